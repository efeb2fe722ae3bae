# assay: build, test and demonstrate. Needs Go, gcc (for -race), git and make, and
# for the tests against SLURM and Kubernetes Debian and root.

VERSION := $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
GOFLAGS_BUILD := -trimpath -ldflags "-s -w -X main.version=$(VERSION)"

GOLANGCI_VERSION := v2.15.0
GOFUMPT_VERSION := v0.12.0
TOOLS := $(CURDIR)/.tools

.PHONY: build runner-image demo test test-unit test-slurm test-docker test-k8s k8s-cluster lint tools bench bench-slurm bench-k8s generate verify man clean

# The binary is static, so that it runs in any image and on any node.
build:
	CGO_ENABLED=0 go build $(GOFLAGS_BUILD) -o bin/assay ./cmd/assay

# The image from which pods on Kubernetes take the program, as an archive that
# `docker load` and `ctr images import` take; made without a daemon.
RUNNER_IMAGE ?= assay-runner:$(VERSION)

runner-image: build
	deploy/k8s/runner/archive $(RUNNER_IMAGE) bin/assay bin/runner-image.tar

# The main job: from model cards to a verdict, with real workloads on this machine.
# Workloads that need a Debian package are left out where it is not installed.
demo: build
	@tags=demo; \
	for card in hpcc:mpirun stress-ng: fio:; do \
		tool=$${card%:*}; needs=$${card#*:}; \
		if command -v $$tool >/dev/null && command -v $${needs:-true} >/dev/null; \
		then tags=$$tags,$$tool; else echo "left out: $$tool is not installed"; fi; \
	done; \
	set -ex; \
	bin/assay build --tags $$tags --manifest-output build_manifest.json; \
	bin/assay lint build_manifest.json; \
	bin/assay run -m build_manifest.json

# The tests against clusters mostly wait, so they do that at the same time.
test: test-unit
	$(MAKE) -j3 --keep-going --output-sync=target test-slurm test-docker test-k8s

# The processes that tests start are race-enabled as well, and would each wait for a
# second at their end. The tests of models/ only run the binary, without the detector.
test-unit:
	GORACE=atexit_sleep_ms=0 go test -race $$(go list ./... | grep -v '^assay/models$$')
	go test ./models

# Tests against a real SLURM on this machine; they carry the build tag slurm. One
# package after the other, because they stop daemons that all of them use; many
# tests at once, because they mostly wait.
# SLURM_RUN picks some of them, SLURM_DIR is where the cluster lies.
SLURM_RUN ?= ^TestSlurm
SLURM_PACKAGES = $(addprefix ./,$(sort $(dir $(shell grep -rl --include='*_test.go' '^//go:build slurm' cmd deploy pkg))))

test-slurm:
	testdata/clusters/slurm/with $(or $(SLURM_DIR),/tmp/assay-slurm-$$$$) \
		env GORACE=atexit_sleep_ms=0 go test -race -tags slurm -count 1 -p 1 -parallel 12 -timeout 30m -run '$(SLURM_RUN)' $(SLURM_PACKAGES)

# Tests against a real Docker Engine and registry on this machine; they carry the
# build tag docker. DOCKER_RUN picks some of them, DOCKER_DIR is where both lie.
DOCKER_RUN ?= ^TestDocker
DOCKER_PACKAGES = $(addprefix ./,$(sort $(dir $(shell grep -rl --include='*_test.go' '^//go:build docker' cmd deploy pkg))))

test-docker:
	testdata/clusters/docker/with $(or $(DOCKER_DIR),/tmp/assay-docker-$$$$) \
		env GORACE=atexit_sleep_ms=0 go test -race -tags docker -count 1 -p 1 -parallel 8 -timeout 20m -run '$(DOCKER_RUN)' $(DOCKER_PACKAGES)

# Tests against a real Kubernetes on this machine; they carry the build tag k8s. The
# first time it is built from source, which takes 10 to 15 minutes. What runs in its
# containers is bin/assay, because that needs no C library.
# K8S_RUN picks some of the tests, K8S_DIR is where the cluster lies.
K8S_RUN ?= ^TestK8s
K8S_PACKAGES = $(addprefix ./,$(sort $(dir $(shell grep -rl --include='*_test.go' '^//go:build k8s' cmd deploy pkg))))

test-k8s: build
	testdata/clusters/k8s/with $(or $(K8S_DIR),/tmp/assay-k8s-$$$$) \
		env GORACE=atexit_sleep_ms=0 go test -race -tags k8s -count 1 -p 1 -parallel 6 -timeout 30m -run '$(K8S_RUN)' $(K8S_PACKAGES)

# Builds what the Kubernetes for tests is made of.
k8s-cluster:
	testdata/clusters/k8s/build

bench: build
	go test -run "^$$" -bench . -benchtime 0.5s ./pkg/...
	go run ./testdata/bench

# The figures of runs on SLURM, on a cluster on this machine.
bench-slurm: build
	testdata/clusters/slurm/with $(or $(SLURM_DIR),/tmp/assay-slurm-$$$$) go run ./testdata/bench/slurm

# The figures of runs on Kubernetes, on a cluster on this machine.
bench-k8s: build
	testdata/clusters/k8s/with $(or $(K8S_DIR),/tmp/assay-k8s-$$$$) go run ./testdata/bench/k8s

# The reference in docs/ and the pages in it that are made from the program.
generate: build
	rm -rf docs/reference
	bin/assay docs reference docs/reference

man: build
	bin/assay docs man bin/man

# Fails when a generated file is not current.
verify: generate
	git diff --exit-code -- docs/reference
	test -z "$$(git status --porcelain -- docs/reference)"

tools: $(TOOLS)/golangci-lint $(TOOLS)/gofumpt

$(TOOLS)/golangci-lint:
	GOBIN=$(TOOLS) go install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_VERSION)

$(TOOLS)/gofumpt:
	GOBIN=$(TOOLS) go install mvdan.cc/gofumpt@$(GOFUMPT_VERSION)

lint: tools
	go vet -tags slurm,docker,k8s ./...
	test -z "$$($(TOOLS)/gofumpt -l cmd deploy pkg schemas templates)"
	$(TOOLS)/golangci-lint run --build-tags slurm,docker,k8s ./...

clean:
	rm -rf bin .tools
