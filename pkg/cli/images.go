package cli

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"assay/pkg/build"
	"assay/pkg/container"
	"assay/pkg/discover"
	"assay/pkg/exitcode"
	"assay/pkg/imagebuild"
	"assay/pkg/phrase"
	"assay/pkg/regular"
)

// defaultBuildJobs is how many images are built at once: builds mostly wait for the
// network and the disk, and their steps use several processors by themselves.
const defaultBuildJobs = 2

// passwordVariable is the variable of the environment that may hold the password of
// the registry. No process that is started gets it.
const passwordVariable = "ASSAY_REGISTRY_PASSWORD"

// passwordBytes bounds a file with a password.
const passwordBytes = 64 << 10

// imageFlags say how the images of cards come about.
type imageFlags struct {
	runtime      string
	context      string
	args         []string
	registry     string
	username     string
	passwordFile string
	useImage     string
	archs        []string
	clean        bool
	noImages     bool
	unbuilt      bool // there is no building in this command
	jobs         int
	logDir       string
}

func addImageFlags(c *cobra.Command, f *imageFlags) {
	fl := c.Flags()
	fl.StringVar(&f.runtime, "runtime", "auto", "what builds images: docker, podman, or auto for the first of them that works")
	fl.StringVar(&f.context, "build-context", "", "directory that images are built from (default: dockercontext of the card, else ROOT/docker)")
	fl.StringArrayVar(&f.args, "build-arg", nil, "NAME of a build argument that gets its value from the environment; it is kept out of manifest and logs")
	fl.StringVar(&f.registry, "registry", "", "HOST[/PATH] of the registry that images are pushed to")
	fl.StringVar(&f.username, "registry-username", "", "user to log in as; without it the logins of docker or podman are used")
	fl.StringVar(&f.passwordFile, "registry-password-file", "", "file with the password, - is stdin (default: "+passwordVariable+" of the environment)")
	fl.StringVar(&f.useImage, "use-image", "", "image to run in, instead of building any; auto: what each card's dockerfile is FROM")
	fl.StringSliceVar(&f.archs, "target-archs", nil, "GPU architectures to build an image each for, such as gfx90a,gfx942")
	fl.BoolVar(&f.clean, "clean-docker-cache", false, "build without a cache, on the newest base images")
	fl.BoolVar(&f.noImages, "no-images", false, "build no image: cards that have a dockerfile run directly on the host too")
	fl.IntVar(&f.jobs, "build-jobs", defaultBuildJobs, "images that are built or pushed at the same time")
	fl.StringVar(&f.logDir, "build-log-dir", "", "directory of the builds' logs (default: build_logs beside the manifest)")
}

// check refuses flags that contradict each other.
func (f imageFlags) check() error {
	for _, both := range []struct {
		a, b   bool
		names  string
		reason string
	}{
		{f.useImage != "", f.registry != "", "--use-image and --registry", "nothing is built that could be pushed"},
		{f.useImage != "", len(f.archs) > 0, "--use-image and --target-archs", "nothing is built"},
		{f.useImage != "", f.noImages, "--use-image and --no-images", "one runs in an image, the other does not"},
		{f.noImages, f.registry != "", "--no-images and --registry", "nothing is built that could be pushed"},
		{f.passwordFile != "", f.username == "", "--registry-password-file", "--registry-username has to say whose password it is"},
		{f.username != "", f.registry == "", "--registry-username", "--registry has to say where to log in"},
	} {
		if both.a && both.b {
			verb := "exclude each other"
			if !strings.Contains(both.names, " and ") {
				verb = "is not enough"
			}
			return exitcode.Errorf(exitcode.Invalid, "%s %s: %s", both.names, verb, both.reason)
		}
	}
	if f.jobs < 1 {
		return exitcode.Errorf(exitcode.Invalid, "--build-jobs %d: at least 1 image has to be built at once", f.jobs)
	}
	return nil
}

// readBatch reads the batch manifest, if one is named, and selects its cards.
func (f *buildFlags) readBatch() (imagebuild.Batch, error) {
	if f.batch == "" {
		return nil, nil
	}
	if len(f.sel.tags) > 0 {
		return nil, exitcode.Errorf(exitcode.Invalid, "--batch-manifest and --tags exclude each other: both select cards")
	}
	if f.sel.suite != "" {
		return nil, exitcode.Errorf(exitcode.Invalid, "--batch-manifest and --suite exclude each other: both select cards")
	}
	batch, names, err := imagebuild.ReadBatch(f.batch)
	f.sel.tags = names
	return batch, err
}

// images is what makes the images of a manifest.
type images struct {
	maker build.ImageBuilder
	none  error // why there is no maker
	close func() error
}

// imageMaker chooses what makes the images of the cards. No engine is looked for when
// there is nothing to build.
func (a *app) imageMaker(ctx context.Context, f buildFlags, batch imagebuild.Batch, cards []discover.Found) (images, error) {
	im := images{close: func() error { return nil }}
	if err := f.images.check(); err != nil {
		return im, err
	}
	if f.images.useImage != "" {
		existing, err := imagebuild.UseImage(f.images.useImage)
		if err != nil {
			return im, err
		}
		im.maker = existing
		return im, nil
	}
	if !f.images.noImages && !slices.ContainsFunc(cards, build.HasDockerfile) {
		if f.images.registry != "" {
			a.log.Warn("no selected card has a dockerfile: nothing is built, and nothing pushed to " + f.images.registry)
		}
		return im, nil
	}
	if f.images.noImages {
		return im, nil
	}
	if f.images.unbuilt {
		im.none = fmt.Errorf("this command builds no images; build a manifest with 'assay build --tags %s' first, or run directly on the host with --bare",
			strings.Join(f.sel.tags, ","))
		return im, nil
	}
	o, err := a.builderOptions(f, batch)
	if err != nil {
		return im, err
	}
	if slices.ContainsFunc(cards, func(c discover.Found) bool { return build.HasDockerfile(c) && batch.Builds(c.Name) }) {
		o.CLI, err = container.Find(ctx, a.builderEnv(), f.images.runtime)
		if err != nil && ctx.Err() == nil && exitcode.Of(err) != exitcode.Invalid {
			im.none = fmt.Errorf("%w; or name an image that is there already with --use-image, or run directly on the host with --no-images", err)
			return im, nil
		}
		if err != nil {
			return im, err
		}
	}
	builder := imagebuild.New(o)
	im.maker, im.close = builder, builder.Close
	if err := builder.Login(ctx); err != nil {
		_ = builder.Close() // what is wrong with the login matters more
		return im, err
	}
	return im, nil
}

func (a *app) builderOptions(f buildFlags, batch imagebuild.Batch) (o imagebuild.Options, err error) {
	o = imagebuild.Options{
		BuildContext: f.images.context, Clean: f.images.clean, Jobs: f.images.jobs, EnvArgs: f.images.args, Batch: batch,
		LogBase: ".", LogDir: f.images.logDir, OnEvent: a.tellImage,
	}
	if f.output != "-" {
		o.LogBase = filepath.Dir(f.output)
	}
	if o.LogDir == "" {
		o.LogDir = filepath.Join(o.LogBase, "build_logs")
	}
	if f.images.registry != "" {
		if o.Registry, err = imagebuild.ParseRegistry(f.images.registry); err != nil {
			return o, err
		}
	}
	if o.Archs, err = imagebuild.ParseArchs(f.images.archs); err != nil {
		return o, err
	}
	if f.images.username == "" {
		return o, nil
	}
	password, err := a.registryPassword(f.images.passwordFile)
	o.Login = &imagebuild.Login{Username: f.images.username, Password: password}
	return o, err
}

// registryPassword reads the password from where the user has put it.
func (a *app) registryPassword(file string) (string, error) {
	var data []byte
	var err error
	switch file {
	case "":
		data = []byte(a.getenv(passwordVariable))
	case "-":
		data, err = io.ReadAll(io.LimitReader(a.In, passwordBytes))
	default:
		data, err = regular.ReadFile(file, passwordBytes)
	}
	if err != nil {
		return "", exitcode.Errorf(exitcode.Invalid, "the password of the registry cannot be read: %w", err)
	}
	password := strings.TrimRight(string(data), "\r\n")
	if password == "" {
		return "", exitcode.Errorf(exitcode.Invalid, "the password of the registry is empty: put it into --registry-password-file, or into %s", passwordVariable)
	}
	return password, nil
}

// builderEnv is the environment of the engine's command.
func (a *app) builderEnv() []string {
	return slices.DeleteFunc(slices.Clone(a.Env), func(kv string) bool { return strings.HasPrefix(kv, passwordVariable+"=") })
}

// tellImage shows how the builds go on, a line for each begin and end.
func (a *app) tellImage(e imagebuild.Event) {
	if a.quiet {
		return
	}
	took := phrase.Seconds(e.Seconds)
	switch e.Kind {
	case imagebuild.Building:
		fmt.Fprintf(a.Err, "building %s for %s from %s\n", e.Image, e.Card, e.Detail)
	case imagebuild.Built:
		fmt.Fprintf(a.Err, "built %s in %s\n", e.Image, took)
	case imagebuild.BuildFailed:
		fmt.Fprintf(a.Err, "failed %s after %s\n", e.Image, took)
	case imagebuild.Pushing:
		fmt.Fprintf(a.Err, "pushing %s\n", e.Image)
	case imagebuild.Pushed:
		fmt.Fprintf(a.Err, "pushed %s in %s, %s\n", e.Image, took, e.Detail)
	case imagebuild.PushFailed:
		fmt.Fprintf(a.Err, "failed to push %s after %s\n", e.Image, took)
	case imagebuild.Unknown:
	}
}
