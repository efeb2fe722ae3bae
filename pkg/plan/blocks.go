package plan

import (
	"encoding/json"

	"assay/pkg/card"
	"assay/pkg/launcher"
)

// setup is what the launcher's environment depends on: the size of the job and
// the deployment's blocks of single launchers.
func (p *planner) setup(s size) launcher.Setup {
	setup := launcher.Setup{NNodes: s.nnodes, NProc: s.nproc}
	var disagg struct {
		Prefill card.Int `json:"prefill_nodes"`
		Decode  card.Int `json:"decode_nodes"`
	}
	var primus struct {
		ConfigPath string `json:"config_path"`
		CLIExtra   string `json:"cli_extra"`
		Backend    string `json:"backend"`
	}
	at := p.m.Deployment.Pointer("distributed", "sglang_disagg")
	switch s.launcher.Name {
	case "sglang-disagg":
		p.block("sglang_disagg", &disagg)
		if disagg.Prefill.Set && disagg.Decode.Set {
			setup.Disagg = launcher.Disagg{PrefillNodes: disagg.Prefill.Value, DecodeNodes: disagg.Decode.Value}
		} else if disagg.Prefill.Set || disagg.Decode.Set {
			p.warn(at, "prefill_nodes and decode_nodes count together only: the nodes are divided by default")
		}
	case "primus":
		p.block("primus", &primus)
		setup.Primus = launcher.Primus{ConfigPath: primus.ConfigPath, CLIExtra: primus.CLIExtra, Backend: primus.Backend}
	}
	if err := s.launcher.Check(setup); err != nil {
		p.refuse(at, "%w", err)
	}
	return setup
}

// block reads the deployment's block of one launcher, if it has one.
func (p *planner) block(name string, into any) {
	d := p.m.Deployment.Distributed
	if d == nil || len(d.Blocks[name]) == 0 {
		return
	}
	if err := json.Unmarshal(d.Blocks[name], into); err != nil {
		p.refuse(p.m.Deployment.Pointer("distributed", name), "%w", err)
	}
}
