package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/doctor"
	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/engine/auto"
	"github.com/edge-infer/edge-infer/engine/tensorrt"
)

// examineCommand is the hidden command of doctor's child processes.
const examineCommand = "examine"

func newDoctor(stdout io.Writer) *cobra.Command {
	var f runFlags
	var timeout time.Duration
	command := &cobra.Command{
		Use: "doctor", Short: "Check machine, libraries, cameras, model and broker, and say what to do", Args: noArguments,
		Long: `Checks what edge-infer needs: memory, driver, libraries, cameras, the model and the broker, as --config and the flags name them. Each
line is OK, WARN or FAIL, with what to do about it. It changes nothing, may run beside the daemon, and exits with 1 when something fails.

  edge-infer doctor
  edge-infer doctor --camera 0 --model yolo11n.onnx --mqtt tcp://broker:1883
  edge-infer doctor --config /etc/edge-infer/config.yaml --json`,
		RunE: func(command *cobra.Command, _ []string) error {
			c, err := f.settings(command.Flags())
			if err != nil {
				return err
			}
			if timeout <= 0 {
				return usagef("--timeout must be positive")
			}
			program, err := os.Executable()
			if err != nil {
				return err
			}
			d := &doctor.Doctor{
				Config: c, Program: []string{program, examineCommand}, Timeout: timeout, Root: f.root, Folders: writtenFolders(c),
			}
			var failed error // of writing
			all := d.Run(command.Context(), func(found doctor.Finding) {
				if !f.json {
					failed = errors.Join(failed, found.Print(stdout))
				}
			})
			if f.json {
				failed = all.Encode(stdout)
			}
			if failed == nil && all.Failed() > 0 {
				failed = fmt.Errorf("doctor: %d of %d checks failed", all.Failed(), len(all))
			}
			return failed
		},
	}
	flags := command.Flags()
	flags.SortFlags = false
	flags.StringArrayVar(&f.cameras, "camera", nil, "camera to try, URI or NAME=URI; may be given several times")
	config.Flags(config.Default(), flags)
	flags.StringVar(&f.file, "config", "", "YAML file; edge-infer config defaults prints one")
	flags.DurationVar(&timeout, "timeout", time.Minute, "how long a driver, a library, a camera, the model or the broker may take")
	flags.BoolVar(&f.json, "json", false, "print one JSON document")
	flags.StringVar(&f.root, "root", "", "folder in front of /sys, /proc and /etc")
	_ = flags.MarkHidden("root") // the flag exists
	return command
}

// writtenFolders are the folders that a run writes to.
func writtenFolders(c *config.Config) []doctor.Folder {
	const planSize, spoolSize = 1 << 30, 128 << 20
	cache, err := tensorrt.CacheFolder()
	if err != nil {
		cache = ""
	}
	folders := []doctor.Folder{{Check: "cache folder", Path: cache, Need: planSize, Move: "set XDG_CACHE_HOME to another folder"}}
	if c.MQTT.URL != config.Off {
		folders = append(folders, doctor.Folder{
			Check: "event folder", Path: spoolDirectory(c.MQTT.Spool, c.Device), Need: spoolSize, Move: "name another one with --mqtt-spool",
		})
	}
	return folders
}

func newExamine() *cobra.Command {
	return &cobra.Command{
		Use: examineCommand, Hidden: true, Args: noArguments, Short: "Examine one thing for doctor",
		RunE: func(command *cobra.Command, _ []string) error {
			return doctor.Serve(command.Context(), os.Stdin, examineModel)
		},
	}
}

// examineModel runs the network twice on a grey picture and times the second one.
func examineModel(ctx context.Context, r *doctor.Request) doctor.Finding {
	c := config.Default()
	c.Model, c.Engine, c.Detect = r.Model, r.Engine, r.Detect
	detail, err := tryModel(ctx, c)
	switch {
	case err == nil:
		return doctor.Finding{Status: doctor.OK, Detail: detail}
	case errors.Is(err, tensorrt.ErrNoPlan):
		return doctor.Finding{
			Status: doctor.Warn, Detail: "no engine plan yet: the first start builds it, which takes minutes", Fix: "edge-infer build builds it beforehand",
		}
	}
	f := doctor.Finding{Status: doctor.Fail, Detail: err.Error(), Fix: "name another --model or --engine"}
	if e := (*engine.Error)(nil); errors.As(err, &e) && e.Hint != "" {
		plain := *e
		plain.Hint = ""
		f.Detail, f.Fix = plain.Error(), e.Hint
	}
	return f
}

func tryModel(ctx context.Context, c *config.Config) (detail string, err error) {
	options, err := modelOptions(c, 1, c.Detect.Confidence)
	if err != nil {
		return "", err
	}
	e, err := auto.Open(ctx, options, auto.Choice{Engine: c.Engine.Backend}, slog.New(slog.DiscardHandler))
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, e.Close()) }()
	m := e.Model()
	detector, err := openDetector(c, m, c.Detect.Confidence)
	if err != nil {
		return "", err
	}
	const width, height = 640, 480
	picture := engine.Image{Data: make([]byte, 3*width*height), Width: width, Height: height, Stride: 3 * width, Format: engine.BGR}
	for i := range picture.Data {
		picture.Data[i] = 114
	}
	var took time.Duration
	for range 2 { // the first one warms up
		start := time.Now()
		if err := e.Submit(0, []engine.Image{picture}); err != nil {
			return "", err
		}
		result, err := e.Wait(0)
		if err != nil {
			return "", err
		}
		if _, err := detector.Decode(result, 0, width, height, nil); err != nil {
			return "", err
		}
		took = time.Since(start)
	}
	return fmt.Sprintf("%s on %s %s, %s, %s: %.1f ms a picture", m.Path, m.Backend, m.BackendVersion, m.Device, m.Precision,
		float64(took.Microseconds())/1000), nil
}
