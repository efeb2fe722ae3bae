package container

import "testing"

func TestByDigest(t *testing.T) {
	const sha = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	for _, tt := range []struct{ pull, sha, id, want string }{
		{"r:5000/a", sha, "", "r:5000/a@" + sha},
		{"r:5000/a:tag", sha, "", "r:5000/a@" + sha},
		{"a:tag", sha, "", "a@" + sha},
		{"r/a", sha, sha, ""},
		{"r/a", "sha256:1", "", ""},
		{"", sha, "", ""},
		{"r/a@" + sha, sha, "", ""},
		{"r/a", "", "", ""},
	} {
		if got := (Image{Pull: tt.pull, SHA: tt.sha, ID: tt.id}).byDigest(); got != tt.want {
			t.Errorf("%+v: %q", tt, got)
		}
	}
}
