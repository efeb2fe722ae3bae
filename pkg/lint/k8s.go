package lint

import (
	"fmt"
	"path"
	"regexp"
	"strings"

	"assay/pkg/document"
	"assay/pkg/manifest"
)

// podRoot is what nothing can be mounted on in a pod: it is assay's own.
const podRoot = "/assay"

// k8s checks what the k8s block of a run on Kubernetes asks for.
func (c *checker) k8s(d deployment, images document.Node) {
	k := d.block("k8s")
	if !k.Given() {
		k = d.block("kubernetes")
	}
	if !d.onKubernetes(k) {
		return
	}
	c.runnerImage(k, d)
	for _, field := range []string{"cpu", "cpu_limit", "memory", "memory_limit", "shm_size"} {
		c.quantity(k.Get(field))
	}
	c.gpuResource(k, d, images)
	c.k8sNames(k)
	c.tolerations(k.Get("tolerations"))
	c.volumes(k)
	if s := k.Get("secrets"); s.Get("strategy").Text() == "existing" && s.Get("runtime_secret_name").Text() == "" {
		c.at(Error, K8sSecret, s.Get("strategy"), "strategy existing takes secrets from a Secret, and none is named", "name it as secrets.runtime_secret_name")
	}
}

// onKubernetes reports whether the run goes to Kubernetes.
func (d deployment) onKubernetes(k8s document.Node) bool {
	if target := d.config.Get("target").Text(); d.config.Get("target").Given() && target != "" {
		return manifest.TargetName(target) == "k8s"
	}
	return k8s.Kind() == document.KindObject
}

// runnerImage checks where the wrapper of the ranks comes from.
func (c *checker) runnerImage(k document.Node, d deployment) {
	if k.Get("wrapper").Text() == "none" {
		for _, name := range []string{"pre_scripts", "post_scripts"} {
			if n := d.root.Get("context").Get(name); n.Len() > 0 {
				c.at(Error, K8sWrapper, k.Get("wrapper"), fmt.Sprintf("wrapper none runs the images as they are, so that nothing runs the %s of the context", name), "leave wrapper out, or remove them")
			}
		}
		return
	}
	if k.Get("runner_image").Text() != "" {
		return
	}
	at := k
	if !k.Given() {
		at = d.config.Get("target")
	}
	c.atKey(Warning, K8sRunnerImage, at, "no runner_image is named: pods take from it the assay that records how a rank ends",
		"name one, set ASSAY_RUNNER_IMAGE where assay runs, or set wrapper to none")
}

// quantity checks that Kubernetes can read a quantity.
func (c *checker) quantity(n document.Node) {
	kind := n.Kind()
	if (kind != document.KindString && kind != document.KindNumber) || n.Text() == "" || strings.Contains(n.Text(), "$") {
		return
	}
	if !regexp.MustCompile(`^\+?(\d+|\d+\.\d*|\.\d+)([KMGTPE]i|[numkMGTPE]|[eE][+-]?\d+)?$`).MatchString(n.Text()) {
		c.at(Error, K8sQuantity, n, fmt.Sprintf("%q is no quantity of Kubernetes", n.Text()), `write 2, 500m, 1.5, 16Gi or 16G; there is no "GB"`)
	}
}

// gpuResource checks that what nodes call their GPUs is known when some are asked for.
func (c *checker) gpuResource(k document.Node, d deployment, images document.Node) {
	count := k.Get("gpu_count")
	if n, ok := count.Int(); !ok || n < 1 || k.Get("gpu_resource_name").Text() != "" {
		return
	}
	vendors := []document.Node{k.Get("gpu_vendor"), d.root.Get("context").Get("gpu_vendor")}
	for i := range images.Children() {
		vendors = append(vendors, i.Get("gpu_vendor"))
	}
	for _, v := range vendors {
		switch strings.ToUpper(strings.TrimSpace(v.Text())) {
		case "AMD", "NVIDIA":
			return
		}
	}
	c.at(Error, K8sGPUResource, count, "GPUs are asked for, and nothing says what nodes call them", "set gpu_vendor to AMD or NVIDIA, or gpu_resource_name, such as amd.com/gpu")
}

// k8sNames checks names of objects and labels.
func (c *checker) k8sNames(k document.Node) {
	for _, n := range []document.Node{
		k.Get("namespace"), k.Get("service_account"), k.Get("priority_class"), k.Get("data_pvc"), k.Get("results_pvc"),
		k.Get("secrets").Get("runtime_secret_name"), k.Get("queue"),
	} {
		c.objectName(n)
	}
	for n := range k.Get("secrets").Get("image_pull_secret_names").Children() {
		c.objectName(n)
	}
	for n := range k.Get("volumes").Children() {
		c.objectName(n.Get("claim"))
	}
	value := regexp.MustCompile(`^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$`)
	key := regexp.MustCompile(`^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$`)
	for n := range k.Get("node_selector").Children() {
		_, name, prefixed := strings.Cut(n.Key(), "/")
		if !prefixed {
			name = n.Key()
		}
		if len(name) > 63 || !key.MatchString(n.Key()) {
			c.atKey(Error, K8sName, n, fmt.Sprintf("%q is no name of a label", n.Key()), "write NAME or DOMAIN/NAME")
		}
		if v := n.Text(); n.Kind() == document.KindString && (len(v) > 63 || !value.MatchString(v)) {
			c.at(Error, K8sName, n, fmt.Sprintf("%q is no value of a label, so no node has it", v), "a value has at most 63 letters, digits, '-', '_' and '.', and begins and ends with a letter or digit")
		}
	}
}

// objectName checks the name of an object.
func (c *checker) objectName(n document.Node) {
	if n.Kind() != document.KindString || n.Text() == "" || strings.Contains(n.Text(), "$") {
		return
	}
	if name := n.Text(); len(name) > 253 || !regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`).MatchString(name) {
		c.at(Error, K8sName, n, fmt.Sprintf("%q is no name that an object of Kubernetes can have", name), "use lower-case letters, digits, '-' and '.'")
	}
}

// tolerations checks the members of each toleration, of which a misspelt one would
// tolerate something else.
func (c *checker) tolerations(list document.Node) {
	for t := range list.Children() {
		for m := range t.Children() {
			switch m.Key() {
			case "key", "operator", "value", "effect", "tolerationSeconds":
			default:
				c.atKey(Error, K8sToleration, m, fmt.Sprintf("a toleration has no %q", m.Key()), "it has key, operator, value, effect and tolerationSeconds")
			}
		}
	}
}

// volumes checks where what is mounted.
func (c *checker) volumes(k document.Node) {
	at := map[string]string{}
	for _, claim := range []struct{ field, path string }{{"data_pvc", "/data"}, {"results_pvc", "/results"}} {
		if n := k.Get(claim.field); n.Text() != "" && n.Given() {
			at[claim.path] = n.Pointer()
		}
	}
	results := ""
	if n := k.Get("results_pvc"); n.Given() && n.Text() != "" {
		results = n.Pointer()
	}
	for v := range k.Get("volumes").Children() {
		if v.Kind() != document.KindObject {
			continue
		}
		if host, claim := given(v.Get("hostPath")), given(v.Get("claim")); host == claim {
			c.at(Error, K8sVolume, v, "a volume is either a hostPath or a claim", "give one of them")
		}
		c.mountPath(v.Get("mountPath"), at)
		for _, name := range []string{"hostPath", "subPath"} {
			if n := v.Get(name); strings.Contains("/"+n.Text()+"/", "/../") {
				c.at(Error, K8sVolume, n, name+" cannot have an element '..'", "")
			}
		}
		if n := v.Get("results"); n.Raw() == "true" {
			if v.Get("readOnly").Raw() == "true" {
				c.at(Error, K8sVolume, n, "results cannot be copied into a volume that is read-only", "leave readOnly out")
			}
			if results != "" {
				c.at(Error, K8sVolume, n, fmt.Sprintf("results are copied into one volume, and %s is another", results), "choose one")
			}
			results = n.Pointer()
		}
	}
}

func given(n document.Node) bool { return n.Given() && n.Text() != "" }

// mountPath checks one path in the pods against the others.
func (c *checker) mountPath(n document.Node, at map[string]string) {
	if n.Kind() != document.KindString || !path.IsAbs(n.Text()) { // the schema says so
		return
	}
	where := path.Clean(n.Text())
	switch other, taken := at[where]; {
	case where == "/":
		c.at(Error, K8sVolume, n, "nothing can be mounted over the image", "mount it at a directory below /")
	case where == podRoot || strings.HasPrefix(where, podRoot+"/"):
		c.at(Error, K8sVolume, n, podRoot+" is assay's own in the pods", "mount it elsewhere")
	case taken:
		c.at(Error, K8sVolume, n, fmt.Sprintf("two volumes are mounted at %s: this one and %s", where, other), "mount one of them elsewhere")
	default:
		at[where] = n.Pointer()
	}
}
