# edge-infer. `make` alone explains the targets.
include cross/versions.mk

root := $(CURDIR)
deps := $(root)/.deps

# What every Go command of this project needs; `eval "$$(make env)"` gives it to your own shell.
export GOFLAGS := -tags=customenv,gocv_specific_modules,gocv_videoio
export CGO_ENABLED := 1
# OpenCV of the distribution, or the one that cross/deps has built where that is too old. Looked up anew for each command.
opencv = $(shell test ! -e $(deps)/opencv/complete || echo $(deps)/opencv)
export CGO_CPPFLAGS = $(strip -I$(root)/cross/shim $(opencv:%=-I%/include/opencv4) -I/usr/include/opencv4 -I$(deps)/cuda/include)
export CGO_CFLAGS := -O2 -g0
export CGO_CXXFLAGS := -std=c++17 -O2 -g0 -DNDEBUG
# The trampoline libcuda.a of engine/cuda comes first, so that no program needs a driver to start.
# go-nvml's functions are looked up when they are called: a gcc that binds at start by default (Ubuntu's) must not.
export CGO_LDFLAGS = $(strip -L$(deps)/lib $(opencv:%=-L%/lib) $(opencv:%=-Wl,-rpath,%/lib) -Wl,-z,lazy -Wl,--as-needed -lopencv_core -lopencv_imgproc -lopencv_imgcodecs -lopencv_videoio)
export EDGE_INFER_ONNXRUNTIME := $(deps)/onnxruntime/libonnxruntime.so
tools := $(deps)/bin
clang := clang-$(CLANG_VERSION)

.DEFAULT_GOAL := help
.PHONY: apt-repository hawkbit-check attack recording deps-build deps-test deps-lint test-once test-sequential test-race test-load alerts-check triton-check track-bench help deps build demo check-demo test lint vulncheck fuzz bench bench-gpu soak clean env ptx ptx-check release release-check release-check-all check-all jetson-check package package-check

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 14

deps: ## install what is missing (apt packages, ONNX Runtime, CUDA header); quiet when nothing is
	@cross/deps build test

# Prerequisites of the targets that run Go: the flags above are read when a target begins, so its needs must be there by then.
deps-build:
	@cross/deps build

deps-test:
	@cross/deps build test

deps-lint:
	@cross/deps build test lint

build: deps-build ## build bin/edge-infer
	go build -o bin/edge-infer ./cmd/edge-infer
	@ln -sf ../.deps/onnxruntime/libonnxruntime.so bin/libonnxruntime.so

demo: build ## build, then detect parts on the demo conveyor belt with an embedded MQTT broker
	bin/edge-infer --camera demo $(DEMO_FLAGS)

test: deps-test ## install what is missing and run every test; many tests wait for processes, so four run at once
	go test -parallel 4 -timeout 30m ./...

# Packages whose tests compute and share nothing between goroutines, or run programs built elsewhere.
sequential := /(cmd/edge-infer|cross|capture/(motion|scene)|internal/(accuracy|bench|config|config/.*|convert|repository)|engine/(demo|onnx|onnx/.*|quantize|preprocess/kerneltest)|postprocess|postprocess/(draw|evaluate|format|head|internal/.*|scan|track|track/.*|zone|predict/tile))$$

test-once: ## as CI: the tests of each package once, where goroutines meet with the race detector; without the few longest
	@$(MAKE) -s -k test-sequential test-race

test-sequential: deps-test
	cross/go-test -parallel 4 -timeout 30m -- $$(go list ./... | grep -E '$(sequential)')

test-race: deps-test ## the tests of packages with goroutines with the race detector
	cross/go-test -race -short -parallel 4 -timeout 40m -- $$(go list ./... | grep -vE '$(sequential)')

test-load: deps-test ## the tests TEST_LOAD_RUNS (20) times next to six busy loops and a build; prints how many passed and the longest
	@cross/test-load $(or $(TEST_LOAD_RUNS),20)

check-demo: build ## run the demo headless for 20 s and check what it printed
	bin/edge-infer --camera demo --mqtt-listen 127.0.0.1:0 --duration 20s --json | cross/check-demo

lint: deps-lint ## golangci-lint, clang-format, shellcheck, generated files
	$(tools)/golangci-lint-$(GOLANGCI_LINT_VERSION) run ./...
	clang-format-$(CLANG_VERSION) --dry-run --Werror $$(git ls-files -co --exclude-standard '*.c' '*.cc' '*.cpp' '*.h' '*.hpp' '*.cu')
	shellcheck $$(git ls-files -co --exclude-standard | xargs grep -lE '^#!.*(bash|/sh)')
	@$(MAKE) -s ptx-check
	go test -count=1 -run '^(TestRetiredWords|TestFunctionsAreShort)$$' ./cmd/edge-infer

vulncheck: deps-build ## look up the linked modules' known vulnerabilities; needs the network, so not in CI
	@cross/deps vulncheck
	$(tools)/govulncheck-$(GOVULNCHECK_VERSION) ./...

fuzz: deps-test ## fuzz every parser of foreign bytes, each for FUZZTIME (10s)
	@cross/fuzz $(FUZZTIME)

bench: build ## acceptance benchmarks on this machine: the program against baselines in C, alternating, about 8 minutes
	@cross/deps bench
	cmd/acceptance/baseline/build bin/baselines
	@# what the benchmarks run is compiled before the clock runs
	go test -run '^$$' ./cmd/edge-infer/internal/bench ./engine/preprocess ./postprocess/head ./postprocess/predict ./mqtt ./mqtt/payload >/dev/null
	GOFLAGS= CGO_ENABLED=0 go build -o bin/acceptance ./cmd/acceptance
	bin/acceptance cpu -program bin/edge-infer -baselines bin/baselines -json bin/acceptance.json $(BENCH_FLAGS)

track-bench: build ## the tracker beside those of PyPI's `trackers`, and of `boxmot` with BOXMOT=1 (6 GB), about 20 minutes, an hour with BOXMOT=1; needs the network
	@[ -d $(deps)/trackers ] || python3 -m venv $(deps)/trackers
	@$(deps)/trackers/bin/pip install -q --disable-pip-version-check trackers==$(TRACKERS_VERSION) trackeval==$(TRACKEVAL_VERSION) \
		motpy==$(MOTPY_VERSION) stonesoup==$(STONESOUP_VERSION) $(if $(BOXMOT),boxmot==$(BOXMOT_VERSION))
	$(deps)/trackers/bin/python cmd/track-benchmark/sequences.py bin/edge-infer $(deps)/videos bin/videos
	$(deps)/trackers/bin/python cmd/track-benchmark/simulators.py bin/videos
	go run ./cmd/track-benchmark -out bin/track-bench -videos bin/videos $(TRACK_FLAGS)
	$(deps)/trackers/bin/python cmd/track-benchmark/compare.py bin/track-bench

soak: build ## run the program for SOAK_TIME (10m) with four cameras and a real broker: late frames, fairness, memory, leaks, faults
	@cross/deps test
	GOFLAGS= CGO_ENABLED=0 go build -o bin/acceptance ./cmd/acceptance
	bin/acceptance soak -program bin/edge-infer -duration $(or $(SOAK_TIME),10m) -json bin/soak.json $(SOAK_FLAGS)

recording: deps-test ## record 10,000 events, then 16 cameras through RECORDING_KILLS (400) kills and RECORDING_CUTS (200) power cuts, an hour or two; cuts need root
	go test -count=1 -v -timeout 5h ./cmd/edge-infer/internal/record -run '^(TestSimulatedCameras|TestKilledWhileRecording|TestPowerCuts)$$' \
		-events 10000 -probed 1000 -kills $(or $(RECORDING_KILLS),400) -powercuts $(or $(RECORDING_CUTS),200)
	EDGE_INFER_KILLS=$(or $(RECORDING_KILLS),400) go test -count=1 -v -timeout 1h ./cmd/edge-infer/internal/store -run '^TestKills'

attack: deps-test ## attack running programs for ATTACK_TIME (30m): brokers, pages, servers, cameras, reloads, kills, disks; writes docs/data/attacks.csv
	go test -c -o bin/attack.test ./cmd/edge-infer
	cd cmd/edge-infer && EDGE_INFER_ATTACK=$(or $(ATTACK_TIME),30m) EDGE_INFER_ATTACK_TABLE=$(CURDIR)/docs/data/attacks.csv \
		$(CURDIR)/bin/attack.test -test.run '^TestAttack$$' -test.v -test.timeout 24h

bench-gpu: deps-build release-amd64 ## directory with the acceptance benchmarks for an x86-64 machine with a GPU and TensorRT
	cmd/acceptance/pack bin/release/edge-infer-amd64 bin/bench-gpu

release: ## static binaries for arm64 and amd64 in bin/release
	@cross/deps release
	@$(MAKE) -s -j2 release-arm64 release-amd64

release-%:
	@cross/release $* bin/release/edge-infer-$*

release-check: release build ## check both binaries; the arm64 one starts and detects under qemu
	@cross/deps check
	@file bin/release/edge-infer-arm64 bin/release/edge-infer-amd64
	EDGE_INFER_TEST_RELEASE=$(root)/bin/release go test -count=1 -v -short -timeout 30m ./cross

release-check-all: release build ## the same, and the arm64 one runs with stand-ins for every family of TensorRT's ABI
	@cross/deps check
	EDGE_INFER_TEST_RELEASE=$(root)/bin/release go test -count=1 -v -timeout 60m ./cross

check-all: ## all that needs no GPU, an hour and a half on two cores: what CI runs, the longest tests, both binaries in full, the packages
	.ci/run
	@$(MAKE) -s test release-check-all jetson-check package-check

jetson-check: release ## CSI cameras with stand-ins for JetPack's plugins, the arm64 binary under qemu with glibc 2.31, 2.36 and 2.41; needs the network once
	@cross/deps check
	@for release in bullseye bookworm trixie; do cross/camera-machine make $(deps)/release/machines/$$release-arm64 $$release arm64 || exit 1; done
	@# The C library and GStreamer of JetPack 5, 6 and 7, natively.
	@[ -z "$$UBUNTU_MIRROR" ] || for release in focal jammy noble; do \
		cross/camera-machine make $(deps)/release/machines/$$release-amd64 $$release amd64 || exit 1; done
	EDGE_INFER_TEST_RELEASE=$(root)/bin/release EDGE_INFER_TEST_MACHINES=$(deps)/release/machines \
		go test -count=1 -v -timeout 60m -run '^TestJetson' ./cross

package: release ## Debian packages, archives, container images, bill of materials, licences, checksums (signed with MINISIGN_KEY) and install script in bin/release
	@cross/deps check
	@for arch in arm64 amd64; do NFPM=$(tools)/nfpm-$(NFPM_VERSION) cross/package $$arch bin/release || exit 1; done
	@cp deploy/install.sh bin/release
	@cd bin/release && sha256sum *.deb *.tar.gz *.oci.tar *.json install.sh edge-infer-a* >SHA256SUMS
	@[ -z "$(MINISIGN_KEY)" ] || minisign -S -s "$(MINISIGN_KEY)" -m bin/release/SHA256SUMS

apt-repository: package ## apt repository of the packages in APT_REPOSITORY (bin/apt), signed by the GPG key APT_KEY if it is set
	cross/apt-repository bin/release $(or $(APT_REPOSITORY),bin/apt) $(APT_KEY)

package-check: package ## install, upgrade, remove and purge the packages on a clean Debian; start the container image
	EDGE_INFER_TEST_RELEASE=$(root)/bin/release go test -count=1 -v -run '^TestReleased' ./cross/image
	cross/package-check

man: deps-build ## manual pages and shell completions in bin/manual, as the packages have them
	EDGE_INFER_MANUAL=$(root)/bin/manual go test -count=1 -run '^TestManual$$' ./cmd/edge-infer

ptx: ## compile the CUDA kernels to the PTX that is committed
	CLANG=$(clang) engine/preprocess/kernels

ptx-check:
	@fresh=$$(mktemp); trap 'rm -f "$$fresh"' EXIT; CLANG=$(clang) engine/preprocess/kernels "$$fresh"; \
		gzip -dc engine/preprocess/kernels.ptx.gz | cmp -s "$$fresh" || { echo "kernels.ptx.gz does not belong to its source: make ptx"; exit 1; }

alerts-check: ## check and test the Prometheus rules; promtool is in Debian's package prometheus
	promtool check rules docs/prometheus/alerts.yaml
	promtool test rules docs/prometheus/alerts.test.yaml

triton-check: build ## the tests against the real Triton Inference Server; needs the network once and Python with its shared library
	@cmd/edge-infer/internal/tritoncheck/setup $(deps)/triton
	EDGE_INFER_TEST_TRITON=$(deps)/triton go test -count=1 -v -timeout 60m $(TRITON_FLAGS) ./cmd/edge-infer/internal/tritoncheck

hawkbit-check: build ## EDGE_INFER_DAEMONS (3) devices get a bundle from a real goosebit, an update server; needs the network once
	@cmd/edge-infer/internal/hawkbit/goosebit/setup $(deps)/goosebit
	EDGE_INFER_TEST_GOOSEBIT=$(deps)/goosebit go test -count=1 -v -timeout 60m -run '^TestGoosebit' ./cmd/edge-infer/internal/daemon

abi-check: ## compare the TensorRT slot tables with the headers in TRT_INCLUDE
	@engine/tensorrt/abicheck/abi-check "$(TRT_INCLUDE)"

env: ## print the environment that go commands need
	@printf 'export GOFLAGS="%s" CGO_ENABLED=1 CGO_CPPFLAGS="%s" CGO_CFLAGS="%s" CGO_CXXFLAGS="%s" CGO_LDFLAGS="%s" EDGE_INFER_ONNXRUNTIME="%s"\n' \
		'$(GOFLAGS)' '$(CGO_CPPFLAGS)' '$(CGO_CFLAGS)' '$(CGO_CXXFLAGS)' '$(CGO_LDFLAGS)' '$(EDGE_INFER_ONNXRUNTIME)'

clean: ## remove what was built; .deps stays
	rm -rf bin
