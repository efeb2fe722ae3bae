package plan

import "assay/pkg/manifest"

// unheeded is a field that a manifest may have and that nothing acts on.
type unheeded struct {
	given bool
	field string
	so    string // what happens instead
}

// warnAbout names the fields that are given and that nothing acts on, so that no
// one counts on them.
func (p *planner) warnAbout(fields []unheeded, pointer func(...string) string) {
	for _, f := range fields {
		if f.given {
			p.warn(pointer(f.field), "%s is not honoured by this version: %s", f.field, f.so)
		}
	}
}

func (p *planner) warnAboutCard(e manifest.Entry) {
	c := e.Card
	p.warnAbout([]unheeded{
		{c.Cred != "", "cred", "no credentials are fetched; an env_file can give them"},
	}, e.Pointer)
}

func (p *planner) warnAboutDeployment() {
	dep := p.m.Deployment
	p.warnAbout([]unheeded{
		{dep.Debug.Value, "debug", "nothing more is printed"},
		{dep.RankBinary != "" && p.target == "local", "rank_binary", "ranks run under the assay that runs this"},
		{len(dep.Verdict) > 0, "verdict", "cards say how they are judged"},
	}, dep.Pointer)
}
