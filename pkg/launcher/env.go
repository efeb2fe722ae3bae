package launcher

import (
	"fmt"
	"strconv"
)

// Setup is what the environment of a launcher depends on.
type Setup struct {
	NNodes, NProc int // nodes, and processes a node

	Disagg Disagg
	Primus Primus
}

// Disagg is how sglang-disagg divides the nodes behind its proxy, which is the
// first one. Zero of both: two in five prefill, the others decode.
type Disagg struct{ PrefillNodes, DecodeNodes int }

// Primus says what primus trains. Empty fields are left to its script.
type Primus struct{ ConfigPath, CLIExtra, Backend string }

// defaultPrimusConfig is the file that primus reads when none is named.
const defaultPrimusConfig = "exp_pretrain.yaml"

// Check returns an error when the launcher cannot work with the setup.
func (l Launcher) Check(s Setup) error {
	d := s.Disagg
	if l.Name != "sglang-disagg" || d == (Disagg{}) {
		return nil
	}
	if d.PrefillNodes < 1 || d.DecodeNodes < 1 || 1+d.PrefillNodes+d.DecodeNodes != s.NNodes {
		return fmt.Errorf("1 proxy, %d prefill and %d decode nodes do not make %d nodes, with at least 1 of each", d.PrefillNodes, d.DecodeNodes, s.NNodes)
	}
	return nil
}

// Env returns the variables that scripts written for the launcher read, beyond
// the rank environment that every workload gets. They are defaults: an env_file
// and the manifest win over them. Values may refer to ${NODE_RANK} and ${HOSTS},
// which every rank replaces with its own. Variables of the network, such as
// NCCL_SOCKET_IFNAME, are not the launcher's business.
func (l Launcher) Env(s Setup) map[string]string {
	env := map[string]string{}
	if l.environment != nil {
		env = l.environment(s)
	}
	if l.Ray {
		// Ray folds lines that several workers print alike, readings included.
		env["RAY_DEDUP_LOGS"] = "0"
	}
	return env
}

// vllm serves one instance a node: tensor parallel inside, data parallel across.
func vllm(s Setup) map[string]string {
	backend := "auto"
	if s.NNodes > 1 {
		backend = "none"
	}
	return map[string]string{
		"VLLM_TENSOR_PARALLEL_SIZE":   strconv.Itoa(s.NProc),
		"VLLM_PIPELINE_PARALLEL_SIZE": "1",
		"VLLM_DISTRIBUTED_BACKEND":    backend,
	}
}

// sglang serves one instance a node, as vllm does.
func sglang(s Setup) map[string]string {
	return map[string]string{
		"SGLANG_TENSOR_PARALLEL_SIZE":   strconv.Itoa(s.NProc),
		"SGLANG_PIPELINE_PARALLEL_SIZE": "1",
	}
}

// disagg gives the nodes behind the proxy their roles. With too few nodes there
// are none to give.
func disagg(s Setup) map[string]string {
	prefill, decode := s.Disagg.PrefillNodes, s.Disagg.DecodeNodes
	if prefill == 0 && decode == 0 {
		workers := s.NNodes - 1
		prefill = max(1, workers*2/5)
		decode = workers - prefill
	}
	if decode < 1 {
		return map[string]string{}
	}
	return map[string]string{
		"SGLANG_DISAGG_MODE":          "enabled",
		"SGLANG_DISAGG_PREFILL_NODES": strconv.Itoa(prefill),
		"SGLANG_DISAGG_DECODE_NODES":  strconv.Itoa(decode),
		"SGLANG_DISAGG_TOTAL_NODES":   strconv.Itoa(s.NNodes),
		"SGLANG_TP_SIZE":              strconv.Itoa(s.NProc),
		"SGLANG_NODE_RANK":            "${NODE_RANK}",
		"SGLANG_NODE_IPS":             "${HOSTS}",
	}
}

// megatron spreads a layer over a node's GPUs and the layers over the nodes.
func megatron(s Setup) map[string]string {
	tensor := s.NProc
	if s.NNodes == 1 {
		tensor = min(tensor, 8)
	}
	return map[string]string{
		"TENSOR_MODEL_PARALLEL_SIZE":   strconv.Itoa(tensor),
		"PIPELINE_MODEL_PARALLEL_SIZE": strconv.Itoa(s.NNodes),
		"CONTEXT_PARALLEL_SIZE":        "1",
	}
}

func torchtitan(s Setup) map[string]string {
	env := map[string]string{
		"TORCHTITAN_TENSOR_PARALLEL_SIZE":   strconv.Itoa(s.NProc),
		"TORCHTITAN_PIPELINE_PARALLEL_SIZE": strconv.Itoa(s.NNodes),
	}
	if s.NNodes > 1 {
		env["TORCHTITAN_FSDP_ENABLED"] = "1"
		env["TORCHTITAN_CONTEXT_PARALLEL_SIZE"] = "1"
	}
	return env
}

func primus(s Setup) map[string]string {
	env := map[string]string{"PRIMUS_CONFIG_PATH": defaultPrimusConfig}
	for name, value := range map[string]string{
		"PRIMUS_CONFIG_PATH": s.Primus.ConfigPath, "PRIMUS_CLI_EXTRA": s.Primus.CLIExtra, "BACKEND": s.Primus.Backend,
	} {
		if value != "" {
			env[name] = value
		}
	}
	return env
}
