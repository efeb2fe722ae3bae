package cli

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"assay/deploy"
	"assay/pkg/exitcode"
)

// checkLocal runs check on a manifest whose one entry runs a command here.
func checkLocal(t *testing.T, command string, args ...string) (stdout string, code int) {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, "m.json")
	manifest := `{"built_images": {"e": {"docker_image": null}}, "built_models": {"e": {"name": "e", "command": ["` + command + `"]}}, "context": {}}`
	if err := os.WriteFile(path, []byte(manifest), 0o600); err != nil {
		t.Fatal(err)
	}
	var out, errs bytes.Buffer
	code = Main(IO{Out: &out, Err: &errs, Dir: dir}, append([]string{"check", "-m", path, "--runs", filepath.Join(dir, "runs")}, args...))
	t.Logf("%s", errs.String())
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	return out.String(), code
}

func TestCheckOfLocalTarget(t *testing.T) {
	out, code := checkLocal(t, "true")
	if want := "STATE  SUBJECT  FOUND\nok     entry e  its programs are on this machine\n"; out != want || code != 0 {
		t.Errorf("exit code %d:\n%swant\n%s", code, out, want)
	}
	out, code = checkLocal(t, "./absent")
	if code != int(exitcode.Invalid) || !strings.Contains(out, "problem  entry e  entry \"e\": the command ") {
		t.Errorf("exit code %d:\n%s", code, out)
	}
}

func TestCheckJSON(t *testing.T) {
	out, code := checkLocal(t, "true", "--json")
	var got []map[string]string
	if err := json.Unmarshal([]byte(out), &got); err != nil || len(got) != 1 || code != 0 {
		t.Fatalf("exit code %d, %v: %s", code, err, out)
	}
	for field, want := range map[string]string{"subject": "entry e", "state": "ok", "message": "its programs are on this machine"} {
		if got[0][field] != want {
			t.Errorf("%s is %q, want %q", field, got[0][field], want)
		}
	}
}

func TestCodeOfFindings(t *testing.T) {
	manifest, site := deploy.Finding{State: deploy.FindingProblem}, deploy.Finding{State: deploy.FindingProblem, Unavailable: true}
	harmless := []deploy.Finding{{}, {State: deploy.FindingOK}, {State: deploy.FindingWarning, Unavailable: true}}
	for want, found := range map[exitcode.Code][]deploy.Finding{
		exitcode.Pass: harmless, exitcode.Invalid: append(harmless, manifest), exitcode.Error: append(harmless, manifest, site),
	} {
		if got := codeOf(found); got != want {
			t.Errorf("%v: %d, want %d", found, got, want)
		}
	}
	if codeOf([]deploy.Finding{site, manifest}) != exitcode.Error {
		t.Error("the order of findings matters")
	}
}
