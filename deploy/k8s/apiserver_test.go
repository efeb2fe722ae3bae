package k8s

import (
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"assay/deploy"
)

// apiServer behaves as an API server does: it lists and watches Jobs and pods, and
// answers by hand whatever a test says.
type apiServer struct {
	t      *testing.T
	config string // the kubeconfig
	addr   string
	served *httptest.Server

	mu       sync.Mutex
	version  int
	oldest   int // of the versions that a watch may begin with
	objects  map[types.UID]metav1.Object
	history  []change
	ended    chan struct{} // closed when all watches end
	more     chan struct{} // closed when something happened
	watches  int           // that are open
	token    string        // that is accepted
	answer   func(w http.ResponseWriter, r *http.Request) bool
	requests []string
}

// change is one event of a watch.
type change struct {
	version  int
	kind     string // ADDED, MODIFIED, DELETED
	resource string
	object   []byte
}

const apiNamespace = "ns"

func newAPIServer(t *testing.T) *apiServer {
	t.Helper()
	s := &apiServer{t: t, objects: map[types.UID]metav1.Object{}, ended: make(chan struct{}), more: make(chan struct{}), version: 10, token: "first"}
	s.config = filepath.Join(t.TempDir(), "kubeconfig")
	s.start("127.0.0.1:0")
	s.login("first")
	t.Cleanup(s.stop)
	return s
}

// start serves; a server that was stopped serves again where it was.
func (s *apiServer) start(addr string) {
	s.t.Helper()
	l, err := (&net.ListenConfig{}).Listen(s.t.Context(), "tcp", addr)
	if err != nil {
		s.t.Fatal(err)
	}
	s.served = httptest.NewUnstartedServer(s)
	_ = s.served.Listener.Close()
	s.served.Listener = l
	s.served.EnableHTTP2 = true
	s.served.Config.ErrorLog = nil
	s.served.StartTLS()
	s.addr = l.Addr().String()
}

func (s *apiServer) stop() {
	s.cut()
	s.served.CloseClientConnections()
	s.served.Close()
}

// login writes the kubeconfig anew.
func (s *apiServer) login(token string) {
	s.t.Helper()
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.served.TLS.Certificates[0].Certificate[0]})
	if _, err := x509.ParseCertificate(s.served.TLS.Certificates[0].Certificate[0]); err != nil {
		s.t.Fatal(err)
	}
	writeKubeconfig(s.t, s.config, "https://"+s.addr, ca, token)
}

func writeKubeconfig(t *testing.T, path, server string, ca []byte, token string) {
	t.Helper()
	data, err := yaml.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "Config", "current-context": "c",
		"clusters": []any{map[string]any{"name": "c", "cluster": map[string]any{"server": server, "certificate-authority-data": ca}}},
		"users":    []any{map[string]any{"name": "u", "user": map[string]any{"token": token}}},
		"contexts": []any{map[string]any{"name": "c", "context": map[string]any{"cluster": "c", "user": "u", "namespace": apiNamespace}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

// answers has a test answer requests, or leave them to the server.
func (s *apiServer) answers(f func(w http.ResponseWriter, r *http.Request) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answer = f
}

// accepts says which token is good from now on.
func (s *apiServer) accepts(token string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.token = token
}

// asked counts the requests that begin with a text, as in "GET /api/v1".
func (s *apiServer) asked(prefix string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, r := range s.requests {
		if strings.HasPrefix(r, prefix) {
			n++
		}
	}
	return n
}

func (s *apiServer) open() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.watches
}

// put makes an object, or changes it.
func (s *apiServer) put(o metav1.Object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	kind := "ADDED"
	if s.objects[o.GetUID()] != nil {
		kind = "MODIFIED"
	}
	s.changed(kind, o)
	s.objects[o.GetUID()] = o
}

// drop deletes an object.
func (s *apiServer) drop(o metav1.Object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.objects, o.GetUID())
	s.changed("DELETED", o)
}

func (s *apiServer) changed(kind string, o metav1.Object) {
	s.version++
	o.SetResourceVersion(strconv.Itoa(s.version))
	data, err := json.Marshal(o)
	if err != nil {
		panic(err) // nothing of a test's own objects fails
	}
	s.history = append(s.history, change{s.version, kind, resourceName(o), data})
	close(s.more)
	s.more = make(chan struct{})
}

// expire forgets what was before: a watch that goes on from there is gone.
func (s *apiServer) expire() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version++
	s.oldest = s.version
}

// cut ends all watches.
func (s *apiServer) cut() {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.ended)
	s.ended = make(chan struct{})
}

func resourceName(o metav1.Object) string {
	if _, ok := o.(*batchv1.Job); ok {
		return "jobs"
	}
	return "pods"
}

// ServeHTTP implements http.Handler.
func (s *apiServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.requests = append(s.requests, r.Method+" "+r.URL.String())
	answer, token := s.answer, s.token
	s.mu.Unlock()
	if answer != nil && answer(w, r) {
		return
	}
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	at := slices.Index(parts, "namespaces")
	switch {
	case r.Header.Get("Authorization") != "Bearer "+token:
		sayNo(w, http.StatusUnauthorized, metav1.StatusReasonUnauthorized, "Unauthorized", nil)
	case at < 0 || len(parts) < at+3 || parts[at+1] != apiNamespace:
		http.Error(w, "404 page not found", http.StatusNotFound)
	case r.Method == http.MethodGet && len(parts) == at+3 && parts[at+2] == "events":
		reply(w, corev1.EventList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "EventList"}})
	case r.Method == http.MethodGet && len(parts) == at+3 && r.URL.Query().Get("watch") != "":
		s.watch(w, r, parts[at+2])
	case r.Method == http.MethodGet && len(parts) == at+3:
		s.list(w, parts[at+2])
	case r.Method == http.MethodGet && len(parts) == at+4:
		s.get(w, parts[at+2], parts[at+3])
	default:
		http.Error(w, "404 page not found", http.StatusNotFound)
	}
}

func (s *apiServer) get(w http.ResponseWriter, resource, name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, o := range s.objects {
		if resourceName(o) == resource && o.GetName() == name {
			reply(w, o)
			return
		}
	}
	sayNo(w, http.StatusNotFound, metav1.StatusReasonNotFound, fmt.Sprintf("%s %q not found", resource, name), &metav1.StatusDetails{Name: name, Kind: resource})
}

func (s *apiServer) list(w http.ResponseWriter, resource string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	items := []any{}
	for _, o := range s.objects {
		if resourceName(o) == resource {
			items = append(items, o)
		}
	}
	kind, group := "PodList", "v1"
	if resource == "jobs" {
		kind, group = "JobList", "batch/v1"
	}
	reply(w, map[string]any{"apiVersion": group, "kind": kind, "metadata": map[string]any{"resourceVersion": strconv.Itoa(s.version)}, "items": items})
}

// watch tells what happens from a version on. It does not know lists by watch, as
// servers of before 1.34 do not.
func (s *apiServer) watch(w http.ResponseWriter, r *http.Request, resource string) {
	q := r.URL.Query()
	if q.Get("sendInitialEvents") != "" {
		sayNo(w, http.StatusUnprocessableEntity, metav1.StatusReasonInvalid, "sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled", nil)
		return
	}
	from, _ := strconv.Atoi(q.Get("resourceVersion"))
	s.mu.Lock()
	if from < s.oldest {
		s.mu.Unlock()
		sayNo(w, http.StatusGone, metav1.StatusReasonExpired, "too old resource version", nil)
		return
	}
	s.watches++
	ended := s.ended
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		s.watches--
		s.mu.Unlock()
	}()
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusOK)
	for sent := 0; ; {
		s.mu.Lock()
		news, more := s.history[sent:], s.more
		sent = len(s.history)
		s.mu.Unlock()
		for _, c := range news {
			if c.version > from && c.resource == resource {
				_, _ = fmt.Fprintf(w, `{"type":%q,"object":%s}`+"\n", c.kind, c.object)
			}
		}
		_ = http.NewResponseController(w).Flush()
		select {
		case <-more:
		case <-ended:
			return
		case <-r.Context().Done():
			return
		}
	}
}

func reply(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v)
}

func sayNo(w http.ResponseWriter, code int, reason metav1.StatusReason, message string, details *metav1.StatusDetails) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure,
		Code: int32(code), Reason: reason, Message: message, Details: details,
	})
}

// jobNamed is a Job that runs, and handleOf what names it.
func jobNamed(name string) *batchv1.Job {
	return &batchv1.Job{
		TypeMeta:   metav1.TypeMeta{APIVersion: "batch/v1", Kind: "Job"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: apiNamespace, UID: types.UID("uid-" + name), Annotations: map[string]string{labelNonce: "n"}},
	}
}

// podOf is the pod of a rank, whose container runs.
func podOf(j *batchv1.Job, rank int) *corev1.Pod {
	name := fmt.Sprintf("%s-%d", j.Name, rank)
	return &corev1.Pod{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{
			Name: name + "-x", Namespace: apiNamespace, UID: types.UID("uid-" + name),
			Annotations:     map[string]string{batchv1.JobCompletionIndexAnnotation: strconv.Itoa(rank)},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: j.Name, UID: j.UID, Controller: new(true)}},
		},
		Spec: corev1.PodSpec{NodeName: "node1"},
		Status: corev1.PodStatus{
			Phase:             corev1.PodRunning,
			ContainerStatuses: []corev1.ContainerStatus{{Name: "rank", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}},
		},
	}
}

// ended is the pod after its container exited.
func endedPod(p *corev1.Pod, code int32) *corev1.Pod {
	p = p.DeepCopy()
	p.Status.Phase = corev1.PodSucceeded
	if code != 0 {
		p.Status.Phase = corev1.PodFailed
	}
	p.Status.ContainerStatuses[0].State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
		ExitCode: code, StartedAt: metav1.Unix(1000, 0), FinishedAt: metav1.Unix(2000, 0),
	}}
	return p
}

// with is a Job with one more condition.
func with(j *batchv1.Job, kind batchv1.JobConditionType) *batchv1.Job {
	j = j.DeepCopy()
	j.Status.Conditions = append(j.Status.Conditions, batchv1.JobCondition{Type: kind, Status: corev1.ConditionTrue})
	return j
}

func (s *apiServer) refOf(j *batchv1.Job, worldSize int) ref {
	return ref{Kubeconfig: s.config, Namespace: apiNamespace, Name: j.Name, UID: string(j.UID), Nonce: "n", WorldSize: worldSize}
}

func (s *apiServer) handleOf(j *batchv1.Job, worldSize int) deploy.Handle {
	s.t.Helper()
	h, err := s.refOf(j, worldSize).handle()
	if err != nil {
		s.t.Fatal(err)
	}
	return h
}
