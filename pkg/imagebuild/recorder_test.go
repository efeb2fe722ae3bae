package imagebuild

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"assay/pkg/build"
	"assay/pkg/container"
)

// recorder is a docker that writes down how it was called and what could be seen of
// it meanwhile. A Dockerfile says how its build ends, and a file beside the program
// how the others do.
const recorder = `#!/bin/sh
here=$(dirname "$0")
call=$(mktemp "$here/calls/$1.XXXXXX")
printf '%s\n' "$@" >"$call.argv"
env >"$call.env"
cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\0' ' ' >"$call.processes"
case $1 in
login)
	cat >"$call.stdin"
	stat -c %a "$DOCKER_CONFIG" >"$call.mode"
	cat "$DOCKER_CONFIG/config.json" >"$call.config" 2>/dev/null
	[ ! -e "$here/refuse" ] || { echo "denied: $(cat "$call.stdin") is wrong" >&2; exit 1; }
	;;
build)
	while [ $# -gt 1 ]; do
		case $1 in --file) file=$2 ;; --iidfile) id=$2 ;; --tag) tag=$2 ;; esac
		shift
	done
	if grep -q meet "$file"; then # until the others are here too
		touch "$here/meet.$tag"
		i=0
		while [ "$(ls "$here" | grep -c '^meet\.')" -lt 2 ] && [ $i -lt 200 ]; do i=$((i + 1)); sleep 0.05; done
		[ $i -lt 200 ] || { echo 'nobody came' >&2; exit 1; }
	fi
	if grep -q hang "$file"; then touch "$here/hangs"; exec sleep 100; fi
	echo "argument $TOKEN"
	if grep -q fail "$file"; then echo "it went wrong with $TOKEN" >&2; exit 3; fi
	echo "sha256:$(echo "$file $MAD_SYSTEM_GPU_ARCHITECTURE" | sha256sum | cut -c 1-64)" >"$id"
	;;
image) for image; do :; done; echo "$image amd64" ;;
push)
	[ ! -e "$here/unpushable" ] || { echo 'denied: no access' >&2; exit 1; }
	echo "latest: digest: sha256:$(echo "$2" | sha256sum | cut -c 1-64) size: 5"
	;;
esac
`

// fake is a directory with the recorder.
type fake struct {
	t   *testing.T
	dir string
	cli container.CLI
}

func newFake(t *testing.T) fake {
	t.Helper()
	dir := t.TempDir()
	write(t, dir, map[string]string{"docker": recorder, "calls/.keep": ""})
	if err := os.Chmod(filepath.Join(dir, "docker"), 0o755); err != nil {
		t.Fatal(err)
	}
	return fake{t, dir, container.CLI{Name: "docker", Path: filepath.Join(dir, "docker"), Env: []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir}}}
}

// recorded returns a part of what each call of a subcommand left, sorted.
func (f fake) recorded(subcommand, part string) []string {
	f.t.Helper()
	files, err := filepath.Glob(filepath.Join(f.dir, "calls", subcommand+".*."+part))
	if err != nil {
		f.t.Fatal(err)
	}
	var out []string
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			f.t.Fatal(err)
		}
		out = append(out, string(data))
	}
	slices.Sort(out)
	return out
}

// everything that the calls left, and the files below the directories.
func everything(t *testing.T, dirs ...string) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, dir := range dirs {
		err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			data, err := os.ReadFile(path)
			all[path] = string(data)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// models is a models root whose images are built from the texts.
func models(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		write(t, root, map[string]string{"docker/" + name + ".Dockerfile": text})
	}
	return root
}

// all checks and builds the cards, which have the names of their Dockerfiles, as a
// manifest is built.
func all(ctx context.Context, b *Builder, root string, context map[string]any, names ...string) (map[string]build.Image, error) {
	var mu sync.Mutex
	out := map[string]build.Image{}
	var errs []error
	for _, name := range names {
		if err := b.Check(request(root, name, "docker/"+name, context)); err != nil {
			return nil, err
		}
	}
	var wait sync.WaitGroup
	for _, name := range names {
		wait.Go(func() {
			images, err := b.Build(ctx, request(root, name, "docker/"+name, context))
			mu.Lock()
			defer mu.Unlock()
			errs = append(errs, err)
			for _, i := range images {
				out[i.Key] = i
			}
		})
	}
	wait.Wait()
	return out, errors.Join(errs...)
}
