package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
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
	output, err := programtest.Command(t, "dataset", "--out", data, "--count", "12", "--seed", "7", "--width", "640", "--height", "360", "--json").Output()
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
	require.Len(t, saved, 15)

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
