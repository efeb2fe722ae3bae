// Package manifest holds a build manifest as typed data and decodes it from
// JSON. It is pure: it reads only the bytes it is handed. It takes what lint
// lets through and refuses the rest with the JSON pointer of the value.
package manifest

import (
	"encoding/json"

	"github.com/go-json-experiment/json/jsontext"

	"assay/pkg/card"
)

// Manifest is a build_manifest.json: what a build froze. Images and Models are
// joined by key.
type Manifest struct {
	Images              map[string]Image
	Models              []Entry // in the order of the document
	Context             Context
	Deployment          Deployment
	CredentialsRequired []string
	Summary             json.RawMessage // as it stands; nil when absent
	Suite               json.RawMessage // as it stands; nil when absent
	// ModelDir is the models root that scripts are relative to, itself relative to
	// the manifest's directory; empty: that directory.
	ModelDir string
}

// Image is one entry of built_images.
type Image struct {
	Model         string      `json:"model"`
	DockerImage   string      `json:"docker_image"` // empty: the entry runs directly on the host
	Dockerfile    string      `json:"dockerfile"`
	BaseDocker    string      `json:"base_docker"`
	LocalImage    card.Scalar `json:"local_image"`
	RegistryImage string      `json:"registry_image"`
	Registry      string      `json:"registry"`
	GPUVendor     string      `json:"gpu_vendor"`
	BuildDuration card.Scalar `json:"build_duration"` // seconds
	DockerSHA     string      `json:"docker_sha"`     // sha256:…: in the registry when it was pushed, else the id
	ImageID       string      `json:"image_id"`       // sha256:… on the machine that built it
	Architecture  string      `json:"architecture"`   // of its programs: amd64, arm64
	GPUArch       string      `json:"gpu_architecture"`
	LogFile       string      `json:"log_file"` // of the build
}

// Model is what an entry of built_models holds: a card, and where build took it
// from.
type Model struct {
	card.Card
	CardFile   string    `json:"card_file"`
	CardDigest string    `json:"card_digest"`
	GitCommit  string    `json:"git_commit"`
	GitDirty   card.Flag `json:"git_dirty"`
}

// Entry is one entry of built_models.
type Entry struct {
	Key string
	Model
}

// Pointer returns the JSON pointer of a value inside the entry, or of the entry
// itself when no names are given.
func (e Entry) Pointer(names ...string) string {
	return pointer("/built_models", append([]string{e.Key}, names...)...)
}

// pointer appends names to a JSON pointer, escaped as RFC 6901 asks.
func pointer(base string, names ...string) string {
	p := jsontext.Pointer(base)
	for _, n := range names {
		p = p.AppendToken(n)
	}
	return string(p)
}
