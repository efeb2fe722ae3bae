package lint

import (
	"encoding/json"
	"strings"

	"assay/pkg/document"
)

// suiteDeployment checks the deployment of a suite as that of the manifest that is made
// of it. An env_file is left alone: where it lies is known when that is made.
func (c *checker) suiteDeployment(n document.Node) {
	if n.Kind() != document.KindObject {
		return
	}
	data, err := json.Marshal(map[string]any{
		"built_images": map[string]any{"a": map[string]any{}},
		"built_models": map[string]any{"a": map[string]any{"name": "a", "command": []string{"a"}}},
		"context":      map[string]any{}, "deployment_config": n.Value(),
	})
	if err != nil { // what was read can be written
		return
	}
	for _, f := range c.linter.Bytes("manifest.json", data, Options{Kind: Manifest}).Findings {
		if f.Pointer != n.Pointer() && !strings.HasPrefix(f.Pointer, n.Pointer()+"/") || f.Code == EnvFileMissing || f.Code == EnvFileSyntax {
			continue
		}
		at := c.doc.Find(f.Pointer)
		if !at.Exists() { // what is missing is missing here
			at = n
		}
		if f.Code == document.CodeNearMiss {
			c.atKey(f.Severity, f.Code, at, f.Message, f.Fix)
			continue
		}
		c.at(f.Severity, f.Code, at, f.Message, f.Fix)
	}
}
