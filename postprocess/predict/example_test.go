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

// belt draws a picture of the belt that the embedded model knows.
func belt(number int) engine.Image {
	drawing := &scene.Scene{Width: 640, Height: 480, Seed: 1}
	if err := drawing.Open(); err != nil {
		log.Fatal(err)
	}
	picture := engine.Image{Data: make([]byte, 640*480*3), Width: 640, Height: 480, Stride: 640 * 3, Format: engine.BGR}
	if _, err := drawing.Draw(number, picture.Data, picture.Stride, nil); err != nil {
		log.Fatal(err)
	}
	return picture
}

// onCPU opens the embedded model on ONNX Runtime's CPU provider, so that these examples print the same everywhere.
func onCPU() *predict.Network {
	network, err := predict.Open(context.Background(), predict.Options{Backend: "onnxruntime=cpu"})
	if err != nil {
		log.Fatal(err)
	}
	return network
}

// From a file to findings.
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
	for _, finding := range seen[0].Findings {
		fmt.Println(network.Model().Metadata.Labels[finding.Class], finding.Score > 0.5)
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

// Is a GPU usable? What would be chosen, and why?
func ExampleChoose() {
	if err := predict.GPU(0); err != nil {
		fmt.Println("no GPU:", err)
	}
	choice, err := predict.Choose(predict.Options{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("would run on", choice)
}

// A batch: as many pictures as the network takes at a time run together.
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
	for i, picture := range seen {
		fmt.Printf("picture %d: %d findings\n", i, len(picture.Findings))
	}
	// Output:
	// picture 0: 7 findings
	// picture 1: 7 findings
	// picture 2: 6 findings
	// picture 3: 5 findings
	// picture 4: 6 findings
}

// Other thresholds while the network is open.
func ExampleNetwork_Tune() {
	network := onCPU()
	defer network.Close()
	for _, decoding := range []predict.Decoding{{}, {Labels: []string{"gear", "nut"}}, {Limit: 2}} {
		if err := network.Tune(decoding); err != nil {
			log.Fatal(err)
		}
		seen, err := predict.Run(network, belt(40))
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(len(seen[0].Findings))
	}
	// Output:
	// 7
	// 3
	// 2
}

// A film: two requests are always under way, so that reading hides behind computing. Here the film is the drawn belt; a file, a camera or
// an RTSP address is opened by its name as well.
func Example_film() {
	network := onCPU()
	defer network.Close()
	film, err := source.Open(context.Background(), "demo?width=640&height=480&seed=1", capture.Options{Every: true})
	if err != nil {
		log.Fatal(err)
	}
	defer film.Close()
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
		fmt.Printf("frame %d: %d findings\n", number, len(result.Pictures[0].Findings))
	}
	submitted, finished := 0, 0
	for ; submitted < 4; submitted++ {
		if submitted-finished == network.Slots() {
			finish(finished)
			finished++
		}
		frame, err := film.Next(&pool)
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
	// frame 0: 7 findings
	// frame 1: 7 findings
	// frame 2: 7 findings
	// frame 3: 7 findings
}
