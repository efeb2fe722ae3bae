// Package imagebuild makes the container images of cards with the command of a
// container engine: it finds the Dockerfile of a card, builds it, pushes the image
// where it is told to, and says for the manifest what came out.
//
// Values of build arguments and passwords are never arguments of a process: they
// reach the engine's command through its environment or its standard input.
package imagebuild

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"assay/pkg/build"
	"assay/pkg/container"
	"assay/pkg/discover"
)

// archArg is the build argument that names a GPU architecture.
const archArg = "MAD_SYSTEM_GPU_ARCHITECTURE"

// Options say how images are built.
type Options struct {
	CLI          container.CLI
	BuildContext string   // directory that every image is built from; empty: see Builder.contextDir
	Registry     string   // HOST[/PATH] to push to; empty: images stay where they are built
	Login        *Login   // for the registry; nil: what the engine's own configuration has
	Archs        []string // GPU architectures to build each image for; none: one image
	Clean        bool     // use no cache, and the newest base images
	Jobs         int      // builds and pushes at the same time; at least 1
	LogDir       string   // where the log of each build goes; made when needed
	LogBase      string   // directory that the manifest names logs relative to
	EnvArgs      []string // names of build arguments that have their values in CLI.Env
	Batch        Batch    // per card: what a batch manifest says
	OnEvent      func(Event)
}

// Event is the begin or the end of a build or a push. OnEvent gets one at a time.
type Event struct {
	Kind    Kind
	Card    string
	Image   string  // local name, or for a push the one in the registry
	Detail  string  // of a build that begins: the Dockerfile; of an end: image id, digest or error
	Seconds float64 // of an end
}

// Kind says what an event is.
type Kind int

// The kinds of events.
const (
	Unknown Kind = iota
	Building
	Built
	BuildFailed
	Pushing
	Pushed
	PushFailed
)

// Builder builds images. It is a build.ImageBuilder; Close it at the end.
type Builder struct {
	o       Options
	slots   chan struct{}
	session session

	mu     sync.Mutex
	owners map[string]string   // by image name: what it is the image of
	shared map[string]*outcome // by what is built

	telling sync.Mutex
}

// New returns a builder.
func New(o Options) *Builder {
	return &Builder{
		o: o, slots: make(chan struct{}, max(o.Jobs, 1)), session: session{cli: o.CLI, login: o.Login, registry: o.Registry},
		owners: map[string]string{}, shared: map[string]*outcome{},
	}
}

// Close removes what a login left. It is safe to call twice.
func (b *Builder) Close() error { return b.session.close() }

// Needs says whether a card is going to run in an image.
func (b *Builder) Needs(c discover.Found) bool { return build.HasDockerfile(c) }

// Check says why the images of a card cannot be made, as far as that can be told
// beforehand.
func (b *Builder) Check(r build.ImageRequest) error {
	orders, err := b.orders(r)
	if err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, o := range orders {
		if owner, taken := b.owners[o.name]; taken && owner != o.key {
			return fmt.Errorf("its image would be called %s, which is the image of %s: rename the card", o.name, owner)
		}
		b.owners[o.name] = o.key
		b.share(o) // the first of the cards that need a build is the one that it is made for
	}
	return nil
}

// Build makes the images of a card, one an architecture that was asked for.
func (b *Builder) Build(ctx context.Context, r build.ImageRequest) ([]build.Image, error) {
	orders, err := b.orders(r)
	if err != nil {
		return nil, err
	}
	images := make([]build.Image, len(orders))
	var all sync.WaitGroup
	for i, o := range orders {
		all.Go(func() { images[i] = b.fill(ctx, o) })
	}
	all.Wait()
	return images, ctx.Err()
}

// order is an image that is to be made.
type order struct {
	card, key  string
	name       string // of the image, without a registry
	arch       string // GPU architecture; may be empty
	named      bool   // the architecture is part of the key
	dockerfile string // absolute path
	shown      string // the same, as the manifest has it
	dir        string // the build context
	args       map[string]string
	base       string
	vendor     string
	push       string // reference in a registry; empty for no push
	registry   string
	ready      bool // it exists already, as ref
	ref        string
}

// orders lists the images of a card.
func (b *Builder) orders(r build.ImageRequest) ([]order, error) {
	file, err := findDockerfile(r)
	if err != nil {
		return nil, err
	}
	args, err := buildArgs(r.Context, b.o.EnvArgs, b.o.CLI.Env)
	if err != nil {
		return nil, err
	}
	o := order{
		card: r.Card.Name, key: r.Card.Name, name: imageName(r.Card.Name, file.base()), dockerfile: file.path, shown: file.shown,
		args: args, arch: args[archArg],
	}
	b.place(&o)
	if o.ready {
		if err := o.read(file); err != nil {
			return nil, err
		}
		return []order{o}, nil
	}
	if o.dir, err = b.contextDir(r, file); err != nil {
		return nil, err
	}
	if len(b.o.Archs) == 0 {
		return []order{o}, o.read(file)
	}
	if o.arch != "" {
		return nil, fmt.Errorf("docker_build_arg has %s, and --target-archs sets it too: leave one of them out", archArg)
	}
	var all []order
	for _, arch := range b.o.Archs {
		of := o.forArch(arch)
		if err := of.read(file); err != nil {
			return nil, err
		}
		all = append(all, of)
	}
	return all, nil
}

// read takes from the Dockerfile what the manifest says about the image.
func (o *order) read(file dockerfile) error {
	text, err := readDockerfile(file.path)
	if err != nil {
		return err
	}
	o.base = baseImage(text, o.args)
	o.vendor = file.vendorOf(o.base)
	return nil
}

// forArch is the order for one of several architectures.
func (o order) forArch(arch string) order {
	args := map[string]string{archArg: arch}
	for k, v := range o.args {
		args[k] = v
	}
	o.args, o.arch, o.named = args, arch, true
	o.key += "_" + arch
	o.name = repository(o.name + archSuffix(arch))
	if o.push != "" {
		o.push += archSuffix(arch)
	}
	return o
}

// identity is the same for builds that have the same result.
func (o order) identity() string {
	var names []string
	for name := range o.args {
		names = append(names, name)
	}
	slices.Sort(names)
	id := fmt.Sprintf("%q %q", o.dockerfile, o.dir)
	for _, name := range names {
		id += fmt.Sprintf(" %q=%q", name, o.args[name])
	}
	return id
}

func (b *Builder) tell(e Event) {
	if b.o.OnEvent == nil {
		return
	}
	b.telling.Lock()
	defer b.telling.Unlock()
	b.o.OnEvent(e)
}
