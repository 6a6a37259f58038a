package predict_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"

	"github.com/edge-infer/edge-infer/capture"
	"github.com/edge-infer/edge-infer/capture/scene"
	"github.com/edge-infer/edge-infer/capture/source"
	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/postprocess/predict"
)

// belt draws an image of the belt that the embedded model knows.
func belt(number int) engine.Image {
	drawing := &scene.Scene{Width: 640, Height: 480, Seed: 1}
	if err := drawing.Open(); err != nil {
		log.Fatal(err)
	}
	img := engine.Image{Data: make([]byte, 640*480*3), Width: 640, Height: 480, Stride: 640 * 3, Format: engine.BGR}
	if _, err := drawing.Draw(number, img.Data, img.Stride, nil); err != nil {
		log.Fatal(err)
	}
	return img
}

// onCPU opens the embedded model on ONNX Runtime's CPU provider, so that these examples print the same everywhere.
func onCPU() *predict.Network {
	network, err := predict.Open(context.Background(), predict.Options{Backend: "onnxruntime=cpu"})
	if err != nil {
		log.Fatal(err)
	}
	return network
}

// From a file to detections.
func Example() {
	network, err := predict.Open(context.Background(), predict.Options{Model: "demo", Backend: "onnxruntime=cpu"}) // or yolo11n.onnx
	if err != nil {
		log.Fatal(err)
	}
	defer network.Close()
	seen, err := predict.Run(network, belt(40))
	if err != nil {
		log.Fatal(err)
	}
	for _, detection := range seen[0].Detections {
		fmt.Println(network.Model().Metadata.Labels[detection.Class], detection.Score > 0.5)
	}
	// Unordered output:
	// gear true
	// spring true
	// washer true
	// nut true
	// bearing true
	// washer true
	// nut true
}

// A batch: as many images as the network takes at a time run together.
func ExampleRun() {
	options := predict.Options{Backend: "onnxruntime=cpu", Log: slog.New(slog.DiscardHandler)}
	options.MaxBatch = 4
	network, err := predict.Open(context.Background(), options)
	if err != nil {
		log.Fatal(err)
	}
	defer network.Close()
	seen, err := predict.Run(network, belt(0), belt(40), belt(80), belt(120), belt(160))
	if err != nil {
		log.Fatal(err)
	}
	for i, img := range seen {
		fmt.Printf("image %d: %d detections\n", i, len(img.Detections))
	}
	// Output:
	// image 0: 7 detections
	// image 1: 7 detections
	// image 2: 6 detections
	// image 3: 5 detections
	// image 4: 6 detections
}

// Other thresholds while the network is open.
func ExampleNetwork_Tune() {
	network := onCPU()
	defer network.Close()
	for _, decoding := range []predict.Decoding{{}, {Classes: []string{"gear", "nut"}}, {Limit: 2}} {
		if err := network.Tune(decoding); err != nil {
			log.Fatal(err)
		}
		seen, err := predict.Run(network, belt(40))
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(len(seen[0].Detections))
	}
	// Output:
	// 7
	// 3
	// 2
}

// A video: two requests are always under way, so that reading hides behind computing. Here the video is the drawn belt; a file, a camera or
// an RTSP address is opened by its name as well.
func Example_video() {
	network := onCPU()
	defer network.Close()
	video, err := source.Open(context.Background(), "demo?width=640&height=480&seed=1", capture.Options{EveryFrame: true})
	if err != nil {
		log.Fatal(err)
	}
	defer video.Close()
	pool := capture.Pool{Buffers: network.Slots(), Alloc: func(size int) ([]byte, func(), error) {
		buffer, err := network.Alloc(size)
		if err != nil {
			return nil, nil, err
		}
		return buffer.Data, buffer.Free, nil
	}}
	defer pool.Close()

	frames := make([]capture.Frame, network.Slots())
	finish := func(number int) {
		slot := number % network.Slots()
		result, err := network.Wait(slot)
		if err != nil {
			log.Fatal(err)
		}
		frames[slot].Release()
		fmt.Printf("frame %d: %d detections\n", number, len(result.Results[0].Detections))
	}
	submitted, finished := 0, 0
	for ; submitted < 4; submitted++ {
		if submitted-finished == network.Slots() {
			finish(finished)
			finished++
		}
		frame, err := video.Next(&pool)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			log.Fatal(err)
		}
		slot := submitted % network.Slots()
		frames[slot] = frame
		if err := network.Submit(slot, []engine.Image{frame.Image()}); err != nil {
			log.Fatal(err)
		}
	}
	for ; finished < submitted; finished++ {
		finish(finished)
	}
	// Output:
	// frame 0: 7 detections
	// frame 1: 7 detections
	// frame 2: 7 detections
	// frame 3: 7 detections
}
