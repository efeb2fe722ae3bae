package rank_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"assay/pkg/evidence"
	"assay/pkg/plan"
	"assay/pkg/rundir"
)

// The launcher's defaults win over what is inherited, and over nothing else.
func TestLauncherEnvironment(t *testing.T) {
	f := newFixture(t, "")
	f.attempt.Job.LauncherEnv = map[string]string{
		"A": "launcher", "B": "launcher", "C": "launcher", "D": "launcher", "NODE": "n${NODE_RANK}", "IPS": "${HOSTS}", "LITERAL": "${HOME}",
	}
	path := f.file("mad.env", "C=file\nD=file\nSEEN=$A\n", 0o600)
	f.attempt.Job.EnvFile = &plan.EnvFile{Path: path, Format: "shell"}
	f.attempt.Job.Env = map[string]string{"D": "manifest"}
	f.attempt.Job.NNodes, f.attempt.Job.WorldSize = 2, 2
	f.call.Rank, f.call.Hosts = 1, []string{"n01", "n02", "unused"}
	f.call.Env = append(f.call.Env, "B=inherited", "C=inherited")
	got := environ(t, f)
	for name, want := range map[string]string{
		"A": "launcher", "B": "launcher", "C": "file", "D": "manifest", "SEEN": "launcher", "NODE": "n1", "IPS": "n01,n02", "LITERAL": "${HOME}",
	} {
		if got[name] != want {
			t.Errorf("%s is %q, want %q", name, got[name], want)
		}
	}
}

func TestHostsThatAreNotKnown(t *testing.T) {
	for nnodes, want := range map[int]string{1: "a", 2: ""} {
		f := newFixture(t, "")
		f.attempt.Job.LauncherEnv = map[string]string{"IPS": "${HOSTS}"}
		f.attempt.Job.NNodes, f.attempt.Job.WorldSize = nnodes, nnodes
		f.call.MasterAddr = "a"
		got, set := environ(t, f)["IPS"]
		if got != want || set != (want != "") {
			t.Errorf("%d nodes: IPS is %q", nnodes, got)
		}
	}
}

// Both ends of a pair learn of each other where the hosts are known.
func TestPeersByHosts(t *testing.T) {
	for _, tt := range []struct {
		rank, nnodes int
		master       string
		hosts        []string
		want         string
	}{
		{0, 2, "a", []string{"a", "b"}, "b"},
		{1, 2, "a", []string{"a", "b"}, "a"},
		{0, 2, "127.0.0.1", []string{"n1", "n2"}, "n2"},
		{0, 1, "a", []string{"a", "b"}, "a"},
		{0, 2, "a", []string{"a"}, "a"},
		{0, 2, "a", nil, ""},
	} {
		f := newFixture(t, "")
		f.attempt.Job.Scope, f.attempt.Job.NNodes, f.attempt.Job.WorldSize = "pair", tt.nnodes, 2
		f.call.Rank, f.call.MasterAddr, f.call.Hosts = tt.rank, tt.master, tt.hosts
		got := environ(t, f)
		if got["ASSAY_PEER_HOST"] != tt.want || got["BURNIN_PEER_HOST"] != tt.want {
			t.Errorf("%+v: the peer is %q and %q", tt, got["ASSAY_PEER_HOST"], got["BURNIN_PEER_HOST"])
		}
	}
}

// withModules gives the rank a module command whose modules are files below
// the model directory.
func withModules(f *fixture, names ...string) {
	f.t.Helper()
	init := f.file("init.sh", `module() { [ -r "$MODS/$2" ] || { echo "ERROR: Unable to locate a modulefile for '$2'" >&2; return 1; }; . "$MODS/$2"; }`, 0o600)
	f.call.Env = append(f.call.Env, "BASH_ENV="+init, "MODS="+f.model)
	f.attempt.Job.Modules = names
}

func TestModules(t *testing.T) {
	f := newFixture(t, "")
	f.file("gcc", "export CC=gcc-$LAUNCHED WHICH=module; unset GONE\n", 0o600)
	f.file("mpi", "export MPI=$CC\n", 0o600)
	withModules(f, "gcc", "mpi")
	f.attempt.Job.LauncherEnv = map[string]string{"LAUNCHED": "yes"}
	path := f.file("mad.env", "WHICH=file-after-$WHICH\nSECRET=hunter2\n", 0o600)
	f.attempt.Job.EnvFile = &plan.EnvFile{Path: path, Format: "shell"}
	f.call.Env = append(f.call.Env, "GONE=1", "WHICH=inherited")
	got := environ(t, f)
	for name, want := range map[string]string{"CC": "gcc-yes", "MPI": "gcc-yes", "WHICH": "file-after-module", "SECRET": "hunter2"} {
		if got[name] != want {
			t.Errorf("%s is %q, want %q", name, got[name], want)
		}
	}
	if _, set := got["GONE"]; set {
		t.Error("GONE is still set")
	}
	log := f.read(rundir.WrapperLog)
	if !strings.Contains(log, "modules gcc mpi: CC MPI WHICH") || strings.Contains(log, "gcc-yes") || strings.Contains(log, "hunter2") {
		t.Errorf("the log must name modules and variables and show no value: %q", log)
	}
}

func TestModuleFailsOnTheNode(t *testing.T) {
	f := newFixture(t, `touch "$MODEL_DIR/ran"`)
	f.attempt.Job.Env = map[string]string{"MODEL_DIR": f.model}
	f.file("gcc", "", 0o600)
	withModules(f, "gcc", "rocm/99")
	path := f.file("mad.env", `touch "$MODEL_DIR/ran"`, 0o600)
	f.attempt.Job.EnvFile = &plan.EnvFile{Path: path, Format: "shell"}
	exit, end := f.run()
	const want = `environment module "rocm/99" cannot be loaded: ERROR: Unable to locate a modulefile for 'rocm/99'`
	if exit != 6 || end.Outcome != evidence.OutcomeRefused || end.Code != "MODULE" || end.Message != want {
		t.Errorf("exit %d, end %+v", exit, end)
	}
	if _, err := os.Stat(filepath.Join(f.model, "ran")); err == nil {
		t.Error("the env_file was read, or the workload started")
	}
}

// A signal that comes while modules load ends the rank.
func TestStoppedWhileModulesLoad(t *testing.T) {
	f := newFixture(t, "true")
	f.file("slow", "sleep 600\n", 0o600)
	withModules(f, "slow")
	f.call.Stopped = true
	exit, end := f.run()
	if exit != 143 || end.Outcome != evidence.OutcomeStopped {
		t.Errorf("exit %d, end %+v", exit, end)
	}
}
