package slurm

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// description is the OpenAPI document of a server, of which only the paths matter.
type description struct {
	Paths map[string]struct {
		Get struct {
			Parameters []struct {
				Name string `json:"name"`
			} `json:"parameters"`
		} `json:"get"`
	} `json:"paths"`
	plainAnswer
}

func (d *description) read(from io.Reader) error { return json.NewDecoder(from).Decode(d) }

// api is what a server speaks.
type api struct {
	version    int  // the N of v0.0.N
	history    bool // it has /slurmdb
	duplicates bool // /slurmdb must be told to give every start of a job
}

func (v *api) name() string               { return fmt.Sprintf("v0.0.%d", v.version) }
func (v *api) slurm(path string) string   { return "slurm/" + v.name() + "/" + path }
func (v *api) slurmdb(path string) string { return "slurmdb/" + v.name() + "/" + path }

// restVersions are the versions of the API that are spoken, the best first. Only
// v0.0.38 could be tested with a real server.
func restVersions() []int { return []int{44, 43, 42, 41, 40, 38} }

var versionInPath = regexp.MustCompile(`^/slurm/v0\.0\.(\d{1,4})/job/submit/?$`)

// choose picks the newest version that both sides speak.
func (d *description) choose() (*api, error) {
	var offered []int
	for path := range d.Paths {
		if m := versionInPath.FindStringSubmatch(path); m != nil {
			n, _ := strconv.Atoi(m[1])
			offered = append(offered, n)
		}
	}
	slices.Sort(offered)
	for _, n := range restVersions() {
		if !slices.Contains(offered, n) {
			continue
		}
		v := &api{version: n}
		for path, p := range d.Paths {
			if strings.TrimRight(path, "/") != "/"+v.slurmdb("jobs") {
				continue
			}
			v.history = true
			for _, q := range p.Get.Parameters {
				v.duplicates = v.duplicates || q.Name == "show_duplicates"
			}
		}
		return v, nil
	}
	if len(offered) == 0 {
		return nil, errors.New("its description (/openapi/v3) names no way to submit jobs")
	}
	return nil, fmt.Errorf("it speaks the versions v0.0.N with N of %v, and this assay %v", offered, restVersions())
}
