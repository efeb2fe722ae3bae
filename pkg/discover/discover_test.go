package discover_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"assay/pkg/discover"
	"assay/pkg/exitcode"
)

// Each case is an archive: the comment says how to call Find, the files are the
// tree, and the file "want" is what comes out. UPDATE=1 rewrites it.
func TestCases(t *testing.T) {
	cases, err := filepath.Glob("../../testdata/cards/discover/*.txtar")
	if err != nil || len(cases) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	for _, file := range cases {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			t.Parallel()
			archive, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			root := t.TempDir()
			want := unpack(t, root, archive)
			o := options(archive)
			o.Root = root
			got := show(root, o)
			if os.Getenv("UPDATE") != "" {
				update(t, file, archive, got)
				return
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if _, err := os.Stat(filepath.Join(root, "scripts/dyn/ran")); err == nil {
				t.Error("a program ran that was not allowed to")
			}
		})
	}
}

func options(a *txtar.Archive) discover.Options {
	o := discover.Options{}
	for line := range strings.Lines(string(a.Comment)) {
		line = strings.TrimSuffix(line, "\n")
		switch tag, isTag := strings.CutPrefix(line, "tags: "); {
		case isTag:
			o.Tags = append(o.Tags, tag)
		case line == "dynamic":
			o.AllowDynamic = true
		case line == "require-tags":
			o.RequireTags = true
		}
	}
	return o
}

func unpack(t *testing.T, root string, a *txtar.Archive) (want string) {
	t.Helper()
	for _, f := range a.Files {
		if f.Name == "want" {
			want = string(f.Data)
			continue
		}
		path := filepath.Join(root, filepath.FromSlash(f.Name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		mode := os.FileMode(0o644)
		if strings.HasPrefix(string(f.Data), "#!") {
			mode = 0o755
		}
		if err := os.WriteFile(path, f.Data, mode); err != nil {
			t.Fatal(err)
		}
	}
	return want
}

func update(t *testing.T, file string, a *txtar.Archive, got string) {
	t.Helper()
	keep := a.Files[:0]
	for _, f := range a.Files {
		if f.Name != "want" {
			keep = append(keep, f)
		}
	}
	a.Files = append(keep, txtar.File{Name: "want", Data: []byte(got)})
	if err := os.WriteFile(file, txtar.Format(a), 0o644); err != nil {
		t.Fatal(err)
	}
}

func show(root string, o discover.Options) string {
	var b strings.Builder
	res, err := discover.Find(context.Background(), o)
	if err != nil {
		fmt.Fprintf(&b, "exit %d\n%s\n", exitcode.Of(err), strings.ReplaceAll(err.Error(), root, "$ROOT"))
	}
	for _, c := range res.Cards {
		raw, err := json.Marshal(c.Raw)
		if err != nil {
			raw = []byte(err.Error())
		}
		fmt.Fprintf(&b, "%s (%s%s:%d:%d, scope %q)\n  %s\n", c.Name, c.File, c.Pointer, c.Line, c.Column, c.Scope, raw)
		if c.Card.Name != c.Name {
			fmt.Fprintf(&b, "  the typed card has another name: %q\n", c.Card.Name)
		}
	}
	for _, w := range res.Warnings {
		fmt.Fprintf(&b, "warning: %s\n", w)
	}
	return b.String()
}
