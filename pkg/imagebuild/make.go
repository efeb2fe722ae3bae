package imagebuild

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"assay/pkg/build"
	"assay/pkg/container"
)

// logTail is how much of the end of a log an error is taken from, in bytes, and
// saidLines how many lines of it.
const (
	logTail   = 16 << 10
	saidLines = 4
)

// outcome is a build that has been started. Its other fields are there when done is
// closed.
type outcome struct {
	owner   string // key of the order that it is made for
	done    chan struct{}
	id      string // of the image
	cpu     string // architecture of the image, as amd64
	seconds float64
	log     string
	err     error
}

// fill makes one image and its entry of the manifest.
func (b *Builder) fill(ctx context.Context, o order) build.Image {
	image := build.Image{Key: o.key}
	if o.named {
		image.Architecture = o.arch
	}
	if o.ready {
		image.Entry = o.entry()
		image.Entry["docker_image"] = o.ref
		return image
	}
	made, first := b.build(ctx, o)
	if made.err == nil && !first {
		made.seconds = 0 // it took the other image's time
		_, made.err = b.session.current().Output(ctx, "tag", made.id, o.name)
	}
	if made.err != nil {
		b.tell(Event{Kind: BuildFailed, Card: o.card, Image: o.name, Detail: made.err.Error(), Seconds: made.seconds})
		image.Err = made.err
		return image
	}
	b.tell(Event{Kind: Built, Card: o.card, Image: o.name, Detail: made.id, Seconds: made.seconds})
	image.Entry = o.entry()
	image.Entry["image_id"] = made.id
	image.Entry["docker_sha"] = made.id
	image.Entry["architecture"] = made.cpu
	image.Entry["build_duration"] = math.Round(made.seconds*1000) / 1000
	image.Entry["log_file"] = b.logName(made.log)
	if o.push != "" {
		b.deliver(ctx, o, &image)
	}
	return image
}

// logName is a log as the manifest names it.
func (b *Builder) logName(log string) string {
	base, err := filepath.Abs(b.o.LogBase)
	if err != nil {
		return log
	}
	abs, err := filepath.Abs(log)
	if err != nil {
		return log
	}
	if rel, err := filepath.Rel(base, abs); err == nil {
		return filepath.ToSlash(rel)
	}
	return log
}

// entry is what is known of an image without making it.
func (o order) entry() map[string]any {
	e := map[string]any{
		"model": o.card, "docker_image": o.name, "dockerfile": o.shown, "base_docker": o.base,
		"gpu_vendor": o.vendor, "local_image": o.push == "", "registry_image": nil, "registry": nil,
	}
	if o.ready && o.push != "" {
		e["registry_image"] = o.push
		if o.registry != "" {
			e["registry"] = o.registry
		}
	}
	if o.arch != "" {
		e["gpu_architecture"] = o.arch
	}
	return e
}

// deliver pushes an image and writes down as what.
func (b *Builder) deliver(ctx context.Context, o order, image *build.Image) {
	image.Pushed = o.push
	begin := time.Now()
	digest, err := b.push(ctx, o)
	if err != nil {
		image.PushErr = fmt.Errorf("%s was built, and not pushed as %s: %w", o.name, o.push, err)
		image.Entry["local_image"] = true
		b.tell(Event{Kind: PushFailed, Card: o.card, Image: o.push, Detail: err.Error(), Seconds: time.Since(begin).Seconds()})
		return
	}
	image.Entry["registry_image"] = o.push
	image.Entry["docker_sha"] = digest
	if o.registry != "" {
		image.Entry["registry"] = o.registry
	}
	b.tell(Event{Kind: Pushed, Card: o.card, Image: o.push, Detail: digest, Seconds: time.Since(begin).Seconds()})
}

// slot waits until another build or push may begin.
func (b *Builder) slot(ctx context.Context) (release func(), err error) {
	select {
	case b.slots <- struct{}{}:
		return func() { <-b.slots }, ctx.Err()
	case <-ctx.Done():
		return func() {}, ctx.Err()
	}
}

// share returns the build that an order needs, which others may need too. b.mu has
// to be held.
func (b *Builder) share(o order) *outcome {
	id := o.identity()
	if b.shared[id] == nil {
		b.shared[id] = &outcome{owner: o.key, done: make(chan struct{})}
	}
	return b.shared[id]
}

// build makes an image, or waits for the order that it is made for; first tells
// whether it is this one.
func (b *Builder) build(ctx context.Context, o order) (made outcome, first bool) {
	b.mu.Lock()
	shared := b.share(o)
	b.mu.Unlock()
	if shared.owner != o.key {
		select {
		case <-shared.done:
			return *shared, false
		case <-ctx.Done():
			return outcome{err: ctx.Err()}, false
		}
	}
	defer close(shared.done)
	release, err := b.slot(ctx)
	defer release()
	if err != nil {
		shared.err = err
		return *shared, true
	}
	b.tell(Event{Kind: Building, Card: o.card, Image: o.name, Detail: o.shown})
	begin := time.Now()
	shared.log = filepath.Join(b.o.LogDir, o.name+".log")
	shared.id, shared.err = b.runBuild(ctx, o, shared.log)
	shared.seconds = time.Since(begin).Seconds()
	if shared.err == nil {
		shared.id, shared.cpu, shared.err = b.inspect(ctx, shared.id)
	}
	return *shared, true
}

// runBuild runs the engine's build and returns the id of the image.
func (b *Builder) runBuild(ctx context.Context, o order, log string) (id string, err error) {
	temporary, err := os.MkdirTemp("", "assay-build-")
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(temporary)) }()
	idFile := filepath.Join(temporary, "id")
	args := []string{"build", "--network", "host", "--force-rm", "--tag", o.name, "--file", o.dockerfile, "--iidfile", idFile}
	if b.o.Clean {
		args = append(args, "--no-cache", "--pull")
	}
	options, env := passArgs(o.args)
	args = append(append(args, options...), o.dir)
	cli := b.session.current()
	cli.Env = append(cli.Env[:len(cli.Env):len(cli.Env)], env...)

	if err := os.MkdirAll(b.o.LogDir, 0o700); err != nil {
		return "", fmt.Errorf("the build's log cannot be written: %w", err)
	}
	file, err := os.OpenFile(log, os.O_CREATE|os.O_TRUNC|os.O_RDWR, 0o600)
	if err != nil {
		return "", fmt.Errorf("the build's log cannot be written: %w", err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	out := newMasker(file, b.private(o.args))
	header, err := fmt.Fprintf(out, "$ %s %s\n", cli.Name, strings.Join(args, " "))
	if err != nil {
		return "", fmt.Errorf("the build's log cannot be written: %w", err)
	}
	exit, err := cli.Run(ctx, nil, out, out, args...)
	err = errors.Join(err, out.flush())
	switch {
	case ctx.Err() != nil:
		return "", ctx.Err()
	case err != nil:
		return "", err
	case exit != 0:
		return "", fmt.Errorf("%s build ended with exit code %d: %s; its log is %s", cli.Name, exit, lastWords(file, int64(header)), log)
	}
	data, err := os.ReadFile(idFile)
	if err != nil {
		return "", fmt.Errorf("%s build did not say what it built: %w", cli.Name, err)
	}
	return strings.TrimSpace(string(data)), nil
}

var stepNoise = regexp.MustCompile(`(?m)^ *(--->|Removing intermediate container|Sending build context).*$`)

// lastWords are the last lines of a log after the header, without those that docker
// says in any case.
func lastWords(file *os.File, header int64) string {
	size, err := file.Seek(0, io.SeekEnd)
	if err != nil {
		return "its log cannot be read"
	}
	text := make([]byte, min(max(size-header, 0), logTail))
	n, err := file.ReadAt(text, size-int64(len(text)))
	if err != nil && !errors.Is(err, io.EOF) {
		return "its log cannot be read"
	}
	said := container.LastLines(stepNoise.ReplaceAllString(string(text[:n]), ""), saidLines)
	return cmp.Or(said, "it said nothing")
}

// inspect asks for the full id and the architecture of an image.
func (b *Builder) inspect(ctx context.Context, image string) (id, cpu string, err error) {
	out, err := b.session.current().Output(ctx, "image", "inspect", "--format", "{{.Id}} {{.Architecture}}", image)
	if err != nil {
		return "", "", fmt.Errorf("the image was built and is not there: %w", err)
	}
	words := strings.Fields(out)
	if len(words) != 2 {
		return "", "", fmt.Errorf("the image was built, and asked for it the engine says %q", container.LastLines(out, 1))
	}
	if !strings.Contains(words[0], ":") { // podman
		words[0] = "sha256:" + words[0]
	}
	return words[0], words[1], nil
}

var digestLine = regexp.MustCompile(`digest: (sha256:[0-9a-f]{64})`)

// push hands an image to a registry and returns the digest it has there.
func (b *Builder) push(ctx context.Context, o order) (digest string, err error) {
	release, err := b.slot(ctx)
	defer release()
	if err != nil {
		return "", err
	}
	b.tell(Event{Kind: Pushing, Card: o.card, Image: o.push})
	cli := b.session.current()
	if _, err := cli.Output(ctx, "tag", o.name, o.push); err != nil {
		return "", err
	}
	args := []string{"push", o.push}
	file := ""
	if cli.Name == "podman" { // it prints no digest
		temporary, err := os.MkdirTemp("", "assay-push-")
		if err != nil {
			return "", err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(temporary)) }()
		file = filepath.Join(temporary, "digest")
		args = []string{"push", "--digestfile", file, o.push}
	}
	out, err := cli.Output(ctx, args...)
	if err != nil {
		return "", err
	}
	if file != "" {
		data, err := os.ReadFile(file)
		return strings.TrimSpace(string(data)), err
	}
	all := digestLine.FindAllStringSubmatch(out, -1)
	if len(all) == 0 {
		return "", errors.New("the engine did not say under which digest it was pushed")
	}
	return all[len(all)-1][1], nil
}
