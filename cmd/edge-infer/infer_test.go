package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/accuracy"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/infer"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/programtest"
	"github.com/edge-infer/edge-infer/engine/onnx"
	"github.com/edge-infer/edge-infer/engine/onnx/testnet"
	"github.com/edge-infer/edge-infer/internal/testtool"
)

// The commands that work on files, one after the other as a person would: draw images, detect on them, save copies, measure accuracy.
func TestImagesEndToEnd(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	data, seenDir := filepath.Join(dir, "data"), filepath.Join(dir, "seen")
	output := programtest.Output(t, "dataset", "--out", data, "--count", "12", "--seed", "7", "--width", "640", "--height", "360",
		"--json")
	require.Contains(t, string(output), `"images":12`)

	output = programtest.Output(t, "infer", "--model", "demo", filepath.Join(data, "images"), programtest.Video(t, 3), "--json",
		"--save", seenDir, "--video", "avi")
	lines := bufio.NewScanner(bytes.NewReader(output))
	images, boxes, frames := 0, 0, 0
	for lines.Scan() {
		var line infer.Seen
		require.NoError(t, json.Unmarshal(lines.Bytes(), &line))
		require.FileExists(t, line.Saved)
		if strings.HasSuffix(line.File, ".mp4") {
			require.Equal(t, filepath.Join(seenDir, "video.avi"), line.Saved)
			require.Equal(t, frames, line.Frame)
			frames++
			continue
		}
		require.Equal(t, 640, line.Width)
		images++
		boxes += len(line.Detections)
	}
	require.Equal(t, 12, images)
	require.Equal(t, 3, frames)
	require.Greater(t, boxes, 12)
	saved, err := os.ReadDir(seenDir)
	require.NoError(t, err)
	require.Len(t, saved, 13)
	output, err = exec.Command(testtool.Program(t, "ffprobe"), "-v", "error", "-count_frames", "-show_entries",
		"stream=codec_name,width,height,r_frame_rate,nb_read_frames",
		"-of", "csv=p=0", filepath.Join(seenDir, "video.avi")).Output()
	require.NoError(t, err)
	require.Equal(t, "mjpeg,320,240,25/1,3", strings.TrimSpace(string(output)), "the copy goes as fast as the video")

	output = programtest.Output(t, "infer", "--model", "demo", filepath.Join(data, "images"))
	require.Len(t, strings.Split(strings.TrimSpace(string(output)), "\n"), 12)

	output = programtest.Output(t, "validate", "--data", data, "--reference", "onnxruntime", "--json")
	var result accuracy.Report
	require.NoError(t, json.Unmarshal(output, &result))
	require.Greater(t, *result.MAP50, 0.85)
	require.Greater(t, *result.MAP, 0.7)
	require.EqualValues(t, 1, result.Agreement.MatchRate, "the reference is the same engine")

	output = programtest.Output(t, "validate", "--data", data)
	require.Regexp(t, `(?m)^class +objects +P +R +mAP50 +mAP50-95\nall +\d+( +[01]\.\d{4}){4}\nbolt +\d+( +[01]\.\d{4}){4}$`, string(output))
}

// TestInferGoesOnAfterABadImageAndAfterAStop.
func TestInferGoesOnAfterABadImageAndAfterAStop(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	data, kept := filepath.Join(dir, "data"), filepath.Join(dir, "kept")
	require.NoError(t, programtest.Command(t, "dataset", "--out", data, "--count", "6", "--width", "320", "--height", "240").Run())
	images := filepath.Join(data, "images")
	names, err := os.ReadDir(images)
	require.NoError(t, err)
	bad := filepath.Join(images, names[2].Name())
	require.NoError(t, os.WriteFile(bad, []byte("no image"), 0o600))
	run := func(flags ...string) (files []string, said string) {
		arguments := append([]string{"infer", "--model", "demo", images, "--json", "--batch", "4", "--save", kept}, flags...)
		command := programtest.Command(t, arguments...)
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
	require.Contains(t, said, `msg="image skipped"`)
	require.Contains(t, said, bad)
	require.True(t, strings.HasSuffix(said, "edge-infer: 1 of 6 images could not be read\n"), said)

	require.NoError(t, os.Remove(filepath.Join(kept, names[4].Name())))
	files, _ = run("--resume")
	require.Equal(t, []string{names[4].Name()}, files, "what has its copy is not run again")

	command := programtest.Command(t, "infer", "--model", "demo", images, "--resume")
	output, err := command.CombinedOutput()
	require.Error(t, err)
	require.Equal(t, "edge-infer: --resume needs --output FILE.jsonl, --format yolo or map with a directory, or --save DIR; "+
		"see edge-infer infer --help\n",
		string(output))
	output, err = programtest.Command(t, "infer", "--model", "demo", bad).Output()
	require.Error(t, err)
	require.Empty(t, output)
}

// Scores or boxes that cannot be such are an error, also of a few images.
func TestInferRefusesImpossibleNumbers(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for score, told := range map[float32]string{
		float32(math.NaN()): "every image has scores that are not from 0 to 1",
		7:                   "every image has scores that are not from 0 to 1",
		0.9:                 "every image has boxes outside the image or of no size",
		0.05:                "",
	} {
		const boxes = 8*8 + 4*4 + 2*2
		b := testnet.NewBuilder(1)
		x := b.Node("ReduceMean", "/mean", []string{b.Input("images", 1, 3, 64, 64)}, onnx.Int("keepdims", 0))
		zero := b.Node("Mul", "/zero", []string{x, b.Floats("/none", []float32{0}, 1)})
		b.Output(b.Node("Add", "/out", []string{zero, b.Floats("/map", slices.Repeat([]float32{score}, 6*boxes), 1, 6, boxes)}), 1, 6, boxes)
		m := b.Model(13)
		m.SetMetadata("names", "['bolt', 'nut']")
		data, err := proto.Marshal(m.Proto)
		require.NoError(t, err)
		path := filepath.Join(dir, "numbers.onnx")
		require.NoError(t, os.WriteFile(path, data, 0o600))
		said, err := programtest.Command(t, "infer", programtest.Video(t, 3), "--model", path).CombinedOutput()
		require.Equal(t, told != "", err != nil, string(said))
		require.Contains(t, string(said), told)
		require.Equal(t, told != "", strings.Contains(string(said), "every image has"), string(said))
	}
}

// TestInferWritesEveryFormat: the same detections, whatever they are written as.
func TestInferWritesEveryFormat(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	data := filepath.Join(dir, "data")
	require.NoError(t, programtest.Command(t, "dataset", "--out", data, "--count", "5", "--seed", "3", "--width", "416", "--height",
		"416").Run())
	images := filepath.Join(data, "images")
	names, err := filepath.Glob(filepath.Join(images, "*"))
	require.NoError(t, err)
	list := filepath.Join(dir, "list.txt")
	require.NoError(t, os.WriteFile(list, []byte(strings.Join(names, "\n")), 0o600))
	video := programtest.Video(t, 2)
	run := func(flags ...string) []byte {
		output := programtest.Output(t, append([]string{"infer", "--model", "demo", "@" + list, "--confidence", "0.4"}, flags...)...)
		return output
	}
	detections := 0
	lines := run("--json")
	for line := range bytes.Lines(lines) {
		var seen infer.Seen
		require.NoError(t, json.Unmarshal(line, &seen))
		detections += len(seen.Detections)
	}
	require.Greater(t, detections, 5)

	file := filepath.Join(dir, "seen.jsonl")
	require.Empty(t, run("--output", file))
	written, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, string(lines), string(written))

	annotations, err := filepath.Glob(filepath.Join(data, "annotations*"))
	require.NoError(t, err)
	require.NotEmpty(t, annotations)
	var results []struct {
		ImageID    any   `json:"image_id"`
		CategoryID int64 `json:"category_id"`
	}
	require.NoError(t, json.Unmarshal(run("--format", "coco", "--annotations", data), &results))
	require.Len(t, results, detections)
	require.IsType(t, 0.0, results[0].ImageID)

	require.Len(t, strings.Split(strings.TrimSpace(string(run("--format", "csv"))), "\n"), detections+1)

	labels := filepath.Join(dir, "labels")
	run(video, "--format", "yolo", "--output", labels)
	files, err := os.ReadDir(labels)
	require.NoError(t, err)
	require.Len(t, files, 7, "one an image, also of the video's")
	rows := 0
	for _, name := range names {
		text, err := os.ReadFile(filepath.Join(labels, strings.TrimSuffix(filepath.Base(name), filepath.Ext(name))+".txt"))
		require.NoError(t, err)
		rows += bytes.Count(text, []byte("\n"))
	}
	require.Equal(t, detections, rows)

	output, err := programtest.Command(t, "infer", "--model", "demo", images, "--output", filepath.Join(dir, "seen.xml")).CombinedOutput()
	require.Error(t, err)
	require.Contains(t, string(output), "unknown suffix, set --format jsonl|coco|yolo|yolo-scores|csv")
}

// TestLinesGoOnWhereTheyStopped: half a line is written again, and so is a video that may not be whole.
func TestLinesGoOnWhereTheyStopped(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	data := filepath.Join(dir, "data")
	require.NoError(t, programtest.Command(t, "dataset", "--out", data, "--count", "3", "--width", "320", "--height", "240").Run())
	video, file := programtest.Video(t, 3), filepath.Join(dir, "seen.jsonl")
	run := func() string {
		programtest.Output(t, "infer", "--model", "demo", filepath.Join(data, "images"), video, "--output", file, "--resume")
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		return string(text)
	}
	whole := run()
	lines := strings.SplitAfter(strings.TrimSpace(whole), "\n")
	require.Len(t, lines, 6)
	for _, stopped := range []string{"", lines[0] + lines[1][:9], strings.Join(lines[:5], "")} {
		require.NoError(t, os.WriteFile(file, []byte(stopped), 0o600))
		require.Equal(t, whole, run())
	}
	changed := strings.Replace(lines[0], `"width":320`, `"width":7`, 1)
	require.NoError(t, os.WriteFile(file, []byte(changed), 0o600))
	require.Equal(t, changed+strings.Join(lines[1:], "")+"\n", run(), "what is there is not run again")

	require.NoError(t, os.WriteFile(file, []byte("a diary\n"), 0o600))
	output, err := programtest.Command(t, "infer", "--model", "demo", video, "--output", file, "--resume").CombinedOutput()
	require.Error(t, err)
	require.Contains(t, string(output), "not an output of infer")
}

// TestSeveralGPUsShareTheFiles.
func TestSeveralGPUsShareTheFiles(t *testing.T) {
	t.Parallel()
	environment, model := programtest.FakeMachine(t, 100300)
	dir := t.TempDir()
	require.NoError(t, programtest.Command(t, "dataset", "--out", dir, "--count", "9", "--width", "320", "--height", "240").Run())
	run := func(gpu string) (stdout, stderr string, err error) {
		command := programtest.CommandWith(t, append(environment, "FAKE_CUDA=devices=2"), "infer", filepath.Join(dir, "images"), "--json",
			"--model", model, "--engine", "tensorrt", "--gpu", gpu)
		var out, said bytes.Buffer
		command.Stdout, command.Stderr = &out, &said
		err = command.Run()
		return out.String(), said.String(), err
	}
	one, said, err := run("0")
	require.NoError(t, err, said)
	require.Len(t, strings.Split(strings.TrimSpace(one), "\n"), 9)
	two, said, err := run("all")
	require.NoError(t, err, said)
	require.Equal(t, one, two)
	_, said, err = run("0,2")
	require.Error(t, err)
	require.Contains(t, said, "there is no GPU 2, this machine has 2")
}

func TestACopyNeverReplacesItsImage(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	data := filepath.Join(dir, "data")
	require.NoError(t, programtest.Command(t, "dataset", "--out", data, "--count", "1", "--width", "320", "--height", "240").Run())
	images := filepath.Join(data, "images")
	output, err := programtest.Command(t, "infer", "--model", "demo", images, "--save", images).CombinedOutput()
	require.Error(t, err)
	require.Contains(t, string(output), "the copy would replace the source")
}

func TestConfigurationFileFromTheProgram(t *testing.T) {
	t.Parallel()
	output := programtest.Output(t, "config", "defaults")
	path := filepath.Join(t.TempDir(), "edge-infer.yaml")
	require.NoError(t, os.WriteFile(path, output, 0o600))
	output = programtest.Output(t, "config", "check", path)
	require.Contains(t, string(output), "no mistakes, but no cameras")
}

func TestDevicesAndVersion(t *testing.T) {
	t.Parallel()
	output := programtest.Output(t, "devices", "--json")
	var found struct {
		Backends []struct {
			Engine         string
			Usable, Chosen bool
		}
	}
	require.NoError(t, json.Unmarshal(output, &found))
	require.NotEmpty(t, found.Backends)
	output = programtest.Output(t, "devices")
	require.Contains(t, string(output), "onnxruntime on the CPU")
	output = programtest.Output(t, "version")
	require.True(t, strings.HasPrefix(string(output), "edge-infer "))
}

// TestInferShowsWhatTheDecoderCan: an image without its end marker, and one that is cut in the middle, are shown, marked and counted.
func TestInferShowsWhatTheDecoderCan(t *testing.T) {
	t.Parallel()
	data := programtest.Scenes(t, 3, 99)
	paths, err := filepath.Glob(data + "/images/*.jpg")
	require.NoError(t, err)
	require.Len(t, paths, 3)
	for path, part := range map[string]float64{paths[0]: 0, paths[2]: 0.25} {
		whole, err := os.ReadFile(path)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(path, whole[:len(whole)-2-int(part*float64(len(whole)))], 0o600))
	}
	command := programtest.Command(t, "infer", "--model", "demo", data+"/images", "--json")
	var stdout, stderr bytes.Buffer
	command.Stdout = &stdout
	command.Stderr = &stderr
	require.NoError(t, command.Run(), stderr.String())
	var damaged []bool
	for line := range strings.Lines(stdout.String()) {
		var seen infer.Seen
		require.NoError(t, json.Unmarshal([]byte(line), &seen))
		damaged = append(damaged, seen.Damaged)
	}
	require.Equal(t, []bool{true, false, true}, damaged)
	require.Contains(t, stderr.String(), `msg="damaged images, the end of their data is missing" images=2`)
}
