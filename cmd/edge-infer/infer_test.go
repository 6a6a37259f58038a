package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/accuracy"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/infer"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/programtest"
)

// The commands that work on files, one after the other as a person would: draw pictures, detect on them, save copies, measure accuracy.
func TestPicturesEndToEnd(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	data, seenDir := filepath.Join(dir, "data"), filepath.Join(dir, "seen")
	output, err := programtest.Command(t, "dataset", "--out", data, "--count", "12", "--seed", "7", "--width", "640", "--height", "360",
		"--json").Output()
	require.NoError(t, err)
	require.Contains(t, string(output), `"pictures":12`)

	output, err = programtest.Command(t, "infer", filepath.Join(data, "images"), programtest.Video(t, 3), "--json", "--save", seenDir).Output()
	require.NoError(t, err)
	lines := bufio.NewScanner(bytes.NewReader(output))
	pictures, boxes, frames := 0, 0, 0
	for lines.Scan() {
		var line infer.Seen
		require.NoError(t, json.Unmarshal(lines.Bytes(), &line))
		require.FileExists(t, line.Saved)
		if strings.HasSuffix(line.File, ".mp4") {
			require.Equal(t, filepath.Join(seenDir, "film.avi"), line.Saved)
			require.Equal(t, frames, line.Frame)
			frames++
			continue
		}
		require.Equal(t, 640, line.Width)
		pictures++
		boxes += len(line.Detections)
	}
	require.Equal(t, 12, pictures)
	require.Equal(t, 3, frames)
	require.Greater(t, boxes, 12)
	saved, err := os.ReadDir(seenDir)
	require.NoError(t, err)
	require.Len(t, saved, 13)
	output, err = exec.Command(programtest.Tool(t, "ffprobe"), "-v", "error", "-count_frames", "-show_entries",
		"stream=codec_name,width,height,r_frame_rate,nb_read_frames",
		"-of", "csv=p=0", filepath.Join(seenDir, "film.avi")).Output()
	require.NoError(t, err)
	require.Equal(t, "mjpeg,320,240,25/1,3", strings.TrimSpace(string(output)), "the copy goes as fast as the film")

	output, err = programtest.Command(t, "infer", filepath.Join(data, "images")).Output()
	require.NoError(t, err)
	require.Len(t, strings.Split(strings.TrimSpace(string(output)), "\n"), 12)

	output, err = programtest.Command(t, "validate", "--data", data, "--reference", "onnxruntime", "--json").Output()
	require.NoError(t, err)
	var result accuracy.Report
	require.NoError(t, json.Unmarshal(output, &result))
	require.Greater(t, *result.MAP50, 0.85)
	require.Greater(t, *result.MAP, 0.7)
	require.EqualValues(t, 1, result.Agreement.MatchRate, "the reference is the same engine")

	output, err = programtest.Command(t, "validate", "--data", data).Output()
	require.NoError(t, err)
	require.Contains(t, string(output), "AP50-95")
}

// TestInferGoesOnAfterABadPictureAndAfterAStop.
func TestInferGoesOnAfterABadPictureAndAfterAStop(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	data, kept := filepath.Join(dir, "data"), filepath.Join(dir, "kept")
	require.NoError(t, programtest.Command(t, "dataset", "--out", data, "--count", "6", "--width", "320", "--height", "240").Run())
	images := filepath.Join(data, "images")
	names, err := os.ReadDir(images)
	require.NoError(t, err)
	bad := filepath.Join(images, names[2].Name())
	require.NoError(t, os.WriteFile(bad, []byte("no picture"), 0o600))
	run := func(flags ...string) (files []string, said string) {
		command := programtest.Command(t, append([]string{"infer", images, "--json", "--batch", "4", "--save", kept}, flags...)...)
		var stdout, stderr bytes.Buffer
		command.Stdout, command.Stderr = &stdout, &stderr
		require.Error(t, command.Run())
		require.Equal(t, 1, command.ProcessState.ExitCode())
		for line := range strings.Lines(stdout.String()) {
			var seen infer.Seen
			require.NoError(t, json.Unmarshal([]byte(line), &seen))
			files = append(files, filepath.Base(seen.File))
		}
		return files, stderr.String()
	}
	files, said := run()
	require.Len(t, files, 5)
	require.NotContains(t, files, names[2].Name())
	require.Contains(t, said, `msg="picture left out"`)
	require.Contains(t, said, bad)
	require.True(t, strings.HasSuffix(said, "edge-infer: 1 of 6 pictures could not be read\n"), said)

	require.NoError(t, os.Remove(filepath.Join(kept, names[4].Name())))
	files, _ = run("--resume")
	require.Equal(t, []string{names[4].Name()}, files, "what has its copy is not run again")

	command := programtest.Command(t, "infer", images, "--resume")
	output, err := command.CombinedOutput()
	require.Error(t, err)
	require.Equal(t, "edge-infer: --resume leaves out what --save DIR holds already: name that folder; see edge-infer infer --help\n",
		string(output))
	output, err = programtest.Command(t, "infer", bad).Output()
	require.Error(t, err)
	require.Empty(t, output)
}

func TestACopyNeverReplacesItsPicture(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	data := filepath.Join(dir, "data")
	require.NoError(t, programtest.Command(t, "dataset", "--out", data, "--count", "1", "--width", "320", "--height", "240").Run())
	images := filepath.Join(data, "images")
	output, err := programtest.Command(t, "infer", images, "--save", images).CombinedOutput()
	require.Error(t, err)
	require.Contains(t, string(output), "the copy would replace the picture itself")
}

func TestConfigurationFileFromTheProgram(t *testing.T) {
	t.Parallel()
	output, err := programtest.Command(t, "config", "defaults").Output()
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "edge-infer.yaml")
	require.NoError(t, os.WriteFile(path, output, 0o600))
	output, err = programtest.Command(t, "config", "check", path).Output()
	require.NoError(t, err)
	require.Contains(t, string(output), "no mistakes, 0 cameras")
}

func TestDevicesAndVersion(t *testing.T) {
	t.Parallel()
	output, err := programtest.Command(t, "devices", "--json").Output()
	require.NoError(t, err)
	var found struct {
		Backends []struct {
			Engine         string
			Usable, Chosen bool
		}
	}
	require.NoError(t, json.Unmarshal(output, &found))
	require.NotEmpty(t, found.Backends)
	output, err = programtest.Command(t, "devices").Output()
	require.NoError(t, err)
	require.Contains(t, string(output), "onnxruntime on the CPU")
	output, err = programtest.Command(t, "version").Output()
	require.NoError(t, err)
	require.True(t, strings.HasPrefix(string(output), "edge-infer "))
}
