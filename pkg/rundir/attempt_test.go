package rundir

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestReadAttempt(t *testing.T) {
	for text, want := range map[string]string{
		`{"version": 1, "nonce": "n", "job": {"id": "j", "world_size": 2}}`: "",
		`{"version": 1, "job": {"id": "j"}}`:                                `job "j" has world size 0`,
		`{"version": 1, "job": {"id": "j", "world_size": -1}}`:              "world size -1",
		`{"version": 2, "job": {"id": 7}}`:                                  "has format version 2, this assay knows 1",
		`{"job": {"id": "j", "world_size": 2}}`:                             "has format version 0",
		`{"version": 1`:                                                     "unexpected end",
		``:                                                                  "unexpected end",
	} {
		dir := t.TempDir()
		path := filepath.Join(dir, JobFile)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		a, err := ReadAttempt(dir)
		switch {
		case want == "" && (err != nil || a.Nonce != "n" || a.Identity(1).WorldSize != 2):
			t.Errorf("%s: %+v, %v", text, a, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), path)):
			t.Errorf("%s: error %v, want %q and the path", text, err, want)
		}
	}
	if _, err := ReadAttempt(t.TempDir()); !os.IsNotExist(err) {
		t.Errorf("error %v, want that it does not exist", err)
	}
}

func TestMakeRankDir(t *testing.T) {
	attempt := t.TempDir()
	mode := 0o770 | fs.ModeSetgid
	if err := os.Chmod(attempt, mode); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second time it is there
		dir, err := MakeRankDir(attempt, 3)
		if err != nil || dir != RankDir(attempt, 3) {
			t.Fatalf("%s, %v", dir, err)
		}
		for _, d := range []string{dir, filepath.Dir(dir)} {
			if info, err := os.Stat(d); err != nil || info.Mode()&(fs.ModePerm|fs.ModeSetgid) != mode {
				t.Errorf("%s: %v, %v", d, info.Mode(), err)
			}
		}
	}
	if _, err := MakeRankDir(filepath.Join(attempt, "none"), 0); err == nil || !strings.Contains(err.Error(), "cannot be seen from this node") {
		t.Errorf("error %v", err)
	}
}
