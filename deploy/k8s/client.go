package k8s

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"assay/deploy"
	"assay/pkg/environ"
	"assay/pkg/phrase"
	"assay/pkg/plan"
)

// askLimit bounds a question to the API server.
const askLimit = 30 * time.Second

// client talks to one cluster as one user. It knows no more kinds of objects than
// the target needs: the client of all kinds would make the binary twice as large.
type client struct {
	rest      rest.Interface
	namespace string // of the context
	server    string
	refused   atomic.Bool // its credentials, so that the kubeconfig is to be read again
}

// heeding is a transport that notes when the server does not accept credentials.
type heeding struct {
	next   http.RoundTripper
	client *client
}

// RoundTrip implements http.RoundTripper.
func (h heeding) RoundTrip(req *http.Request) (*http.Response, error) {
	res, err := h.next.RoundTrip(req)
	if err == nil && res.StatusCode == http.StatusUnauthorized {
		h.client.refused.Store(true)
	}
	return res, err
}

// inNamespace is the namespace that a job names, else that of the context.
func (c *client) inNamespace(name string) string {
	if name == "" {
		return c.namespace
	}
	return name
}

// client returns the client of the cluster that a job names. After the server did not
// accept its credentials the kubeconfig is read again: tokens end before jobs do.
func (t *Target) client(kubeconfig, kubecontext string) (*client, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	key := kubeconfig + "\x00" + kubecontext
	if c := t.clients[key]; c != nil && !c.refused.Load() {
		return c, nil
	}
	c, err := newClient(t.opt, kubeconfig, kubecontext)
	if err == nil {
		t.clients[key] = c
	}
	return c, err
}

func (t *Target) clientOf(k *plan.K8s) (*client, error) { return t.client(k.Kubeconfig, k.Context) }

// newClient finds the cluster as kubectl does: the named file, else those of
// KUBECONFIG, else the default file, else what a pod is given.
func newClient(opt Options, kubeconfig, kubecontext string) (*client, error) {
	rules := &clientcmd.ClientConfigLoadingRules{ExplicitPath: kubeconfig, WarnIfAllMissing: false}
	if kubeconfig == "" {
		rules.Precedence = kubeconfigs(opt.Env)
	}
	loader := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: kubecontext})
	cfg, err := loader.ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("%w: %w: no cluster can be asked: %s", deploy.ErrUnavailable, deploy.ErrNoTool, noConfig(err, rules))
	}
	namespace, _, err := loader.Namespace()
	if err != nil {
		return nil, fmt.Errorf("%w: the kubeconfig has no namespace: %s", deploy.ErrUnavailable, sentence(err))
	}
	cfg.UserAgent = "assay/" + opt.Version
	cfg.QPS, cfg.Burst = 200, 400 // the server has its own means to slow clients down, which are heeded
	cfg.GroupVersion, cfg.APIPath = &schema.GroupVersion{Version: "v1"}, "/api"
	cfg.NegotiatedSerializer = serializer.NewCodecFactory(kinds()).WithoutConversion()
	cfg.WarningHandler = rest.NoWarnings{}
	c := &client{namespace: namespace, server: cfg.Host}
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper { return heeding{next, c} })
	if c.rest, err = rest.RESTClientFor(cfg); err != nil {
		return nil, fmt.Errorf("%w: the kubeconfig cannot be used: %s", deploy.ErrUnavailable, sentence(err))
	}
	return c, nil
}

// noConfig says why there is no cluster to ask, and what to do about it.
func noConfig(err error, rules *clientcmd.ClientConfigLoadingRules) string {
	files := rules.Precedence
	if rules.ExplicitPath != "" {
		files = []string{rules.ExplicitPath}
	}
	there := slices.DeleteFunc(slices.Clone(files), func(path string) bool {
		_, err := os.Stat(path)
		return err != nil
	})
	switch {
	case len(there) > 0 && clientcmd.IsContextNotFound(err):
		return sentence(err) + "; kubectl config get-contexts lists those of " + strings.Join(there, ", ")
	case len(there) > 0:
		return sentence(err) + "; see " + strings.Join(there, ", ")
	case len(files) > 0:
		return "there is no kubeconfig " + strings.Join(files, ", ") + "; name one in the k8s block or in KUBECONFIG"
	}
	return sentence(err) + "; name a kubeconfig in the k8s block or in KUBECONFIG"
}

// kubeconfigs are the files that kubectl would read.
func kubeconfigs(env []string) []string {
	if list := environ.Get(env, clientcmd.RecommendedConfigPathEnvVar); list != "" {
		return filepath.SplitList(list)
	}
	if home := environ.Get(env, "HOME"); home != "" {
		return []string{filepath.Join(home, clientcmd.RecommendedHomeDir, clientcmd.RecommendedFileName)}
	}
	return nil
}

// kinds are the kinds of objects that the target knows.
func kinds() *runtime.Scheme {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, batchv1.AddToScheme, authorizationv1.AddToScheme} {
		_ = add(s) // never fails: the kinds are known at compile time
	}
	return s
}

// getRaw reads an object of any kind as JSON.
func (c *client) getRaw(ctx context.Context, path string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	return raw(c.rest.Get().AbsPath(path).SetHeader("Accept", "application/json").Do(ctx))
}

// raw is an answer as it came, or the error with the words of the server.
func raw(res rest.Result) ([]byte, error) {
	if err := res.Error(); err != nil {
		return nil, err
	}
	return res.Raw()
}

// list reads the objects that a selector names. Selectors may be empty.
func (c *client) list(ctx context.Context, path, labels, fields string, into runtime.Object) error {
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	r := c.rest.Get().AbsPath(path)
	if labels != "" {
		r = r.Param("labelSelector", labels)
	}
	if fields != "" {
		r = r.Param("fieldSelector", fields)
	}
	return r.Do(ctx).Into(into)
}

// create makes an object; into, which may be nil, is filled with what was made. It
// is asked once: a request that the server may have carried out is never repeated.
func (c *client) create(ctx context.Context, path string, obj, into runtime.Object) error {
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	res := c.rest.Post().AbsPath(path).Param("fieldManager", manager).MaxRetries(0).Body(obj).Do(ctx)
	if into == nil {
		return res.Error()
	}
	return res.Into(into)
}

// createRaw makes an object of any kind from JSON and returns what was made.
func (c *client) createRaw(ctx context.Context, path string, data []byte) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	return raw(c.rest.Post().AbsPath(path).Param("fieldManager", manager).MaxRetries(0).
		SetHeader("Content-Type", "application/json").SetHeader("Accept", "application/json").Body(data).Do(ctx))
}

// remove deletes an object, if it is there and is the one of that uid.
func (c *client) remove(ctx context.Context, path, uid string, how metav1.DeletionPropagation) error {
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	opt := &metav1.DeleteOptions{PropagationPolicy: &how}
	if uid != "" {
		opt.Preconditions = metav1.NewUIDPreconditions(uid)
	}
	err := c.rest.Delete().AbsPath(path).Body(opt).Do(ctx).Error()
	if notThere(err) || uid != "" && apierrors.IsConflict(err) { // it is gone, or another has its name
		return nil
	}
	return err
}

// stream opens the log of a container.
func (c *client) stream(ctx context.Context, path string, params map[string]string) (io.ReadCloser, error) {
	r := c.rest.Get().AbsPath(path)
	for name, value := range params {
		r = r.Param(name, value)
	}
	return r.Stream(ctx)
}

// listOptions says how the objects of a path that carry a label are listed and watched.
func (c *client) listOptions(path, selector string, opt metav1.ListOptions) *rest.Request {
	opt.LabelSelector = selector
	return c.rest.Get().AbsPath(path).VersionedParams(&opt, metav1.ParameterCodec)
}

func (c *client) listFunc(path, selector string, empty func() runtime.Object) func(context.Context, metav1.ListOptions) (runtime.Object, error) {
	return func(ctx context.Context, opt metav1.ListOptions) (runtime.Object, error) {
		into := empty()
		return into, c.listOptions(path, selector, opt).Do(ctx).Into(into)
	}
}

func (c *client) watchFunc(path, selector string) func(context.Context, metav1.ListOptions) (watch.Interface, error) {
	return func(ctx context.Context, opt metav1.ListOptions) (watch.Interface, error) {
		opt.Watch = true
		return c.listOptions(path, selector, opt).Watch(ctx)
	}
}

// classify turns an error of the API into one of the seam's: what is known of what
// was asked for. what says that, as in "create jobs in namespace ci".
func classify(what string, err error) error {
	if err == nil {
		return nil
	}
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		return ofStatus(what, err, status.Status())
	}
	if errors.Is(err, context.Canceled) {
		return fmt.Errorf("%w: it was being asked to %s", err, what)
	}
	text := fmt.Sprintf("the API server could not be asked to %s: %s", what, sentence(err))
	if notSent(err) {
		return fmt.Errorf("%w: %s", deploy.ErrUnavailable, text)
	}
	return fmt.Errorf("%w: %s", deploy.ErrAmbiguous, text)
}

// ofStatus classifies what the server said.
func ofStatus(what string, err error, s metav1.Status) error {
	said := sentence(errors.New(s.Message))
	switch {
	case s.Code == http.StatusUnauthorized:
		return fmt.Errorf("%w: the API server does not accept the credentials of the kubeconfig (it was asked to %s): log in again", deploy.ErrUnavailable, what)
	case s.Code == http.StatusTooManyRequests, s.Code == http.StatusServiceUnavailable:
		return fmt.Errorf("%w: the API server could not %s: %s", deploy.ErrUnavailable, what, said)
	case s.Code >= http.StatusInternalServerError, apierrors.IsServerTimeout(err), apierrors.IsTimeout(err):
		return fmt.Errorf("%w: the API server did not say whether it could %s: %s", deploy.ErrAmbiguous, what, said)
	}
	return fmt.Errorf("%w: %s", deploy.ErrRefused, said)
}

// notSent reports whether an error says that the request never reached the server.
func notSent(err error) bool {
	var dns *net.DNSError
	var op *net.OpError
	var certificate *tls.CertificateVerificationError
	var record tls.RecordHeaderError
	return errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, syscall.EHOSTUNREACH) || errors.Is(err, syscall.ENETUNREACH) ||
		errors.As(err, &dns) || errors.Is(err, os.ErrNotExist) || errors.As(err, &op) && op.Op == "dial" ||
		errors.As(err, &certificate) || errors.As(err, &record) || errors.Is(err, http.ErrSchemeMismatch) || strings.Contains(err.Error(), "TLS handshake timeout")
}

// notThere reports whether the API server says that it has no such object. Others
// say 404 too: a proxy, or a server that does not know the kind.
func notThere(err error) bool {
	return apierrors.IsNotFound(err) && !apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse)
}

// unasked makes any error of a question one of a server that could not be asked.
func unasked(what string, err error) error {
	if err == nil || errors.Is(err, deploy.ErrUnavailable) || errors.Is(err, context.Canceled) {
		return err
	}
	err = classify(what, err)
	if errors.Is(err, deploy.ErrUnavailable) {
		return err
	}
	return fmt.Errorf("%w: %s", deploy.ErrUnavailable, deploy.Said(err))
}

// sentence is the text of an error on one line, without the address of a request:
// what was asked for is said beside it.
func sentence(err error) string {
	text := err.Error()
	var request *url.Error
	if errors.As(err, &request) {
		text = strings.ReplaceAll(text, request.Error(), request.Err.Error())
	}
	return phrase.Line(text)
}
