package slurm

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"
	"pgregory.net/rapid"

	"assay/pkg/plan"
	"assay/templates"
)

// submitting is an environment with what a script keeps, what would change it, and
// what nobody may see.
func submitting() []string {
	return []string{
		"PATH=/opt/it's here/bin:/usr/bin:/bin", "HOME=/home/ada", "DOCKER_HOST=unix:///run/my docker.sock", "REGISTRY_TOKEN=token-secret", "LANG=C.UTF-8", "MODULEPATH=/opt/modules",
		"API_TOKEN=token-secret", "SLURM_JWT=jwt-secret", "SBATCH_PARTITION=nope", "SBATCH_EXPORT=ALL", "SLURM_NTASKS=7", "SLURM_JOB_ID=12",
	}
}

func scripting(env []string) *scheduler {
	return &scheduler{opt: Options{Templates: templates.Files(), Env: env, Binary: "/usr/bin/assay"}, tools: tools{env: env}, submitted: map[string]string{}}
}

// anyHost takes the name of this host out of a script.
func anyHost(t *testing.T, script []byte) string {
	t.Helper()
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	return strings.ReplaceAll(string(script), " host="+host+" ", " host=HOST ")
}

// TestScript renders the attempt of each file and compares the script with the one
// beside it. shellcheck has nothing to say about it.
func TestScript(t *testing.T) {
	paths, err := filepath.Glob("testdata/script/*.json")
	if err != nil || len(paths) < 5 {
		t.Fatalf("%d cases (%v)", len(paths), err)
	}
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".json"), func(t *testing.T) {
			var a plan.Attempt
			if err := json.Unmarshal([]byte(readFile(t, path)), &a); err != nil {
				t.Fatal(err)
			}
			script, err := scripting(submitting()).Script(a)
			if err != nil {
				t.Fatal(err)
			}
			golden(t, strings.TrimSuffix(path, ".json")+".sh", anyHost(t, script))
			for _, secret := range []string{"secret", "nope", "SBATCH_", "API_TOKEN", "HF_TOKEN", "NTASKS"} {
				if bytes.Contains(script, []byte(secret)) {
					t.Errorf("the script has %q", secret)
				}
			}
			if again, err := scripting(submitting()).Script(a); err != nil || !bytes.Equal(script, again) {
				t.Errorf("the second time it is another (%v)", err)
			}
			shellcheck(t, script)
		})
	}
}

func shellcheck(t *testing.T, script []byte) {
	t.Helper()
	path, err := exec.LookPath("shellcheck")
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal("shellcheck is not installed")
		}
		t.Skip("shellcheck is not installed")
	}
	cmd := exec.Command(path, "--shell=bash", "--color=never", "-")
	cmd.Stdin = bytes.NewReader(script)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("shellcheck: %v\n%s", err, out)
	}
}

// sbatchReads reads the options of a script as sbatch does: words end at a space,
// a backslash keeps the next character, quotes keep spaces, and a # outside of
// them begins a comment.
func sbatchReads(script string) []string {
	var words []string
	for line := range strings.Lines(script) {
		rest, is := strings.CutPrefix(line, "#SBATCH")
		if !is {
			if !strings.HasPrefix(line, "#") && strings.TrimSpace(line) != "" {
				break // the first command
			}
			continue
		}
		words = append(words, sbatchWords(strings.TrimSuffix(rest, "\n"))...)
	}
	return words
}

func sbatchWords(line string) []string {
	var words []string
	var word []byte
	var quote byte
	inWord := false
	end := func() {
		if inWord {
			words, word, inWord = append(words, string(word)), nil, false
		}
	}
	for i := 0; i < len(line); i++ {
		c := line[i]
		switch {
		case c == '\\' && i+1 < len(line):
			i++
			word, inWord = append(word, line[i]), true
		case quote != 0 && c == quote:
			quote = 0
		case quote == 0 && (c == '"' || c == '\''):
			quote, inWord = c, true
		case quote == 0 && c == '#':
			end()
			return words
		case quote == 0 && (c == ' ' || c == '\t'):
			end()
		default:
			word, inWord = append(word, c), true
		}
	}
	end()
	return words
}

// assigned are the variables that a script sets to words without substitutions.
func assigned(t *rapid.T, script string) map[string]string {
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(script), "")
	if err != nil {
		t.Fatalf("%v\n%s", err, script)
	}
	got := map[string]string{}
	syntax.Walk(file, func(n syntax.Node) bool {
		if a, ok := n.(*syntax.Assign); ok && a.Value != nil {
			literal := true
			syntax.Walk(a.Value, func(n syntax.Node) bool {
				switch n.(type) {
				case *syntax.CmdSubst, *syntax.ParamExp, *syntax.ArithmExp, *syntax.ProcSubst:
					literal = false
				}
				return literal
			})
			if v, err := expand.Literal(&expand.Config{}, a.Value); literal && err == nil {
				if _, twice := got[a.Name.Value]; !twice {
					got[a.Name.Value] = v
				}
			}
		}
		return true
	})
	return got
}

// hostile are values that hold what shells and sbatch treat specially.
func hostile() *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		parts := rapid.SliceOfN(rapid.SampledFrom([]string{
			"a", "-", "--wrap=x", " ", "'", `"`, "`id`", "$(id)", "${HOME}", "$HOME", `\`, "#", "%j", "%%", ";", "&", "|", "<", ">", "*", "~", "!", "(", ")", "{", "}",
			"é", "漢", "🎉", "#SBATCH", "<<EOF", "=", "\n", "\t", "\r", "\x00", "\x1b[31m", "\x7f", strings.Repeat("long ", 100),
		}), 1, 8).Draw(t, "parts")
		return strings.Join(parts, "")
	})
}

// Every value arrives as it is, or is refused in a sentence that names its option.
func TestScriptWithHostileValues(t *testing.T) {
	control := func(s string) bool {
		return strings.IndexFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f }) >= 0
	}
	rapid.Check(t, func(t *rapid.T) {
		field := rapid.SampledFrom([]string{
			"chdir", "assay", "PATH", "partition", "account", "qos", "reservation", "nodelist", "exclude", "constraint", "time", "mem", "mail-user", "mail-type", "output",
		}).Draw(t, "field")
		v := hostile().Draw(t, "value")
		sl := &plan.Slurm{}
		a := testAttempt("/runs/jobs/bench/1")
		a.Job.Slurm, a.RankBinary = sl, "/opt/assay"
		env := []string{"PATH=/bin"}
		options := map[string]*string{
			"partition": &sl.Partition, "account": &sl.Account, "qos": &sl.QOS, "reservation": &sl.Reservation, "nodelist": &sl.Nodelist, "exclude": &sl.Exclude,
			"constraint": &sl.Constraint, "time": &sl.Time, "mem": &sl.Mem, "mail-user": &sl.MailUser, "mail-type": &sl.MailType,
		}
		want := v
		switch field {
		case "chdir":
			a.Dir = filepath.Join("/runs", v)
			want = a.Dir
		case "assay":
			a.RankBinary = "/opt/" + v
			want = a.RankBinary
		case "output":
			sl.OutputDir = "/logs/" + v
			want = pattern(outputPath(a, "%j"))
		case "PATH":
			env = []string{"PATH=" + v}
		default:
			*options[field] = v
		}
		script, err := scripting(env).Script(a)
		if err != nil {
			if !control(v) {
				t.Fatalf("%s=%q is refused: %v", field, v, err)
			}
			if text := err.Error(); strings.ContainsAny(text, "\n\x00\x1b") || field != "PATH" && !strings.Contains(text, field) && !strings.Contains(text, "path") {
				t.Fatalf("%s=%q is refused with %q", field, v, text)
			}
			return
		}
		set := assigned(t, string(script))
		words := sbatchReads(string(script))
		switch field {
		case "assay", "PATH":
			if got := set[field]; got != want {
				t.Fatalf("%s is %q, want %q in\n%s", field, got, want, script)
			}
		default:
			found := 0
			for _, w := range words {
				if value, is := strings.CutPrefix(w, "--"+field+"="); is && value == want {
					found++
				}
			}
			if found != 1 {
				t.Fatalf("--%s=%q is there %d times in %q", field, want, found, words)
			}
		}
		for _, w := range words {
			if !strings.HasPrefix(w, "--") {
				t.Fatalf("sbatch reads a word %q by itself, of %q", w, words)
			}
		}
		if n := len(words); n != 7 && n != 8 {
			t.Fatalf("%d options: %q", n, words)
		}
	})
}

// The variables that srun passes on are those that the script sets, by name.
func TestScriptEnvironment(t *testing.T) {
	s := scripting(submitting())
	data, err := s.data(testAttempt("/runs/jobs/bench/1"))
	if err != nil {
		t.Fatal(err)
	}
	want := []variable{{"PATH", "/opt/it's here/bin:/usr/bin:/bin"}, {"HOME", "/home/ada"}, {"LANG", "C.UTF-8"}, {"MODULEPATH", "/opt/modules"}}
	if diff := cmp.Diff(want, data.Environment); diff != "" {
		t.Error(diff)
	}
	if data.ExportList != "PATH,HOME,LANG,MODULEPATH" {
		t.Errorf("export list %q", data.ExportList)
	}
	if data, err = scripting(nil).data(testAttempt("/runs/jobs/bench/1")); err != nil || data.ExportList != "NONE" {
		t.Errorf("export list %q of an empty environment, %v", data.ExportList, err)
	}
}

func TestScriptTemplates(t *testing.T) {
	a := testAttempt("/runs/jobs/bench/1")
	for text, want := range map[string]string{
		"#!/bin/bash\n#SBATCH --job-name={{directive .Name}}\n": "",
		"#!/bin/bash\necho {{quote .Name}}\n":                   "has no line #SBATCH --job-name",
		"echo {{.Nothing}}\n":                                   "Nothing",
		"echo {{quote\n":                                        "template of the batch script",
		"if true; then\n":                                       "is no shell script",
	} {
		s := scripting(nil)
		s.opt.Templates = fstest.MapFS{templateFile: &fstest.MapFile{Data: []byte(text)}}
		script, err := s.Script(a)
		switch {
		case want == "" && (err != nil || string(script) != "#!/bin/bash\n#SBATCH --job-name="+testName+"\n"):
			t.Errorf("%q gives %q, %v", text, script, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%q: error %v, want %q", text, err, want)
		}
	}
	s := scripting(nil)
	s.opt.Templates = fstest.MapFS{}
	if _, err := s.Script(a); err == nil || !strings.Contains(err.Error(), templateFile) {
		t.Errorf("no template: %v", err)
	}
}

func TestPattern(t *testing.T) {
	for path, want := range map[string]string{
		"/a/assay-n-j-1-%j.out":      "/a/assay-n-j-1-%j.out",
		"/a/%j/100%/assay-n-%j.out":  "/a/%%j/100%%/assay-n-%j.out",
		"/a%j.out/job.out":           "/a%%j.out/job.out",
		`/a\b/job.out`:               `/a\\b/job.out`,
		`/a\b %j/job.out`:            `/a\\b %j/job.out`,
		"/scratch/runs/jobs/job.out": "/scratch/runs/jobs/job.out",
	} {
		if got := pattern(path); got != want {
			t.Errorf("%s is %s, want %s", path, got, want)
		}
	}
}
