package k8s

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// resources are what a pod asks of its node.
func (r *renderer) resources() (corev1.ResourceRequirements, error) {
	out := corev1.ResourceRequirements{Requests: corev1.ResourceList{}, Limits: corev1.ResourceList{}}
	for _, want := range []struct {
		field, value string
		into         corev1.ResourceList
		name         corev1.ResourceName
	}{
		{"cpu", r.k.CPU, out.Requests, corev1.ResourceCPU},
		{"cpu_limit", r.k.CPULimit, out.Limits, corev1.ResourceCPU},
		{"memory", r.k.Memory, out.Requests, corev1.ResourceMemory},
		{"memory_limit", r.k.MemoryLimit, out.Limits, corev1.ResourceMemory},
	} {
		if want.value == "" {
			continue
		}
		q, err := quantity(want.field, want.value)
		if err != nil {
			return out, err
		}
		want.into[want.name] = q
	}
	if r.k.GPUs > 0 {
		name, err := gpuResource(r.k.GPUResource, r.a.Job.GPUVendor)
		if err != nil {
			return out, err
		}
		n := *resource.NewQuantity(int64(r.k.GPUs), resource.DecimalSI)
		out.Requests[name], out.Limits[name] = n, n // of such a resource they are the same
	}
	return out, nil
}

// quantity reads a quantity of a field.
func quantity(field, value string) (resource.Quantity, error) {
	q, err := resource.ParseQuantity(value)
	if err != nil {
		return q, refuse(field, "%q is no quantity: write it as Kubernetes does, as in \"2\", \"500m\", \"16Gi\"", value)
	}
	if q.Sign() < 0 {
		return q, refuse(field, "%q is less than nothing", value)
	}
	return q, nil
}

// gpuResource is the name under which nodes offer GPUs.
func gpuResource(name, vendor string) (corev1.ResourceName, error) {
	switch {
	case name != "":
		return corev1.ResourceName(name), nil
	case vendor == "AMD":
		return "amd.com/gpu", nil
	case vendor == "NVIDIA":
		return "nvidia.com/gpu", nil
	}
	return "", refuse("gpu_resource_name", "GPUs are asked for, and neither gpu_resource_name nor gpu_vendor says what nodes call them: give one")
}

// tolerations reads the list that the manifest gives as pods have it.
func tolerations(raw json.RawMessage) ([]corev1.Toleration, error) {
	if len(raw) == 0 || string(raw) == "null" {
		return nil, nil
	}
	var items []json.RawMessage
	if err := json.Unmarshal(raw, &items); err != nil {
		return nil, refuse("tolerations", "it is no list of tolerations")
	}
	var out []corev1.Toleration
	for i, item := range items {
		var t corev1.Toleration
		dec := json.NewDecoder(bytes.NewReader(item))
		dec.DisallowUnknownFields()
		if err := dec.Decode(&t); err != nil && !errors.Is(err, io.EOF) {
			return nil, refuse("tolerations/"+strconv.Itoa(i), "it is no toleration: %w", err)
		}
		out = append(out, t)
	}
	return out, nil
}
