package engine

import "math"

// Presets returns the names of the presets, in the order in which messages list them.
func Presets() []string {
	return []string{
		"ultralytics", "ultralytics-classify", "ultralytics-depth", "ultralytics-rtdetr", "torchvision", "timm", "imagenet", "yolox",
		"yolo-nas", "nanodet", "rtdetr", "detr", "rfdetr", "ssd-mobilenet", "keras", "tf-detection", "scrfd", "yunet",
		"movenet", "centernet",
	}
}

// preset returns the preprocessing of a preset for an input whose longer side has that many pixels. The source is each project's own
// prediction or evaluation program.
func preset(name string, side int) Preprocess {
	imagenetMean, imagenetDeviation := []float64{.485, .456, .406}, []float64{.229, .224, .225}
	of := func(resize Resize, interpolation Interpolation, low, high float64) Preprocess {
		return Preprocess{Resize: resize, Interpolation: interpolation, Range: []float64{low, high}}
	}
	var p Preprocess
	switch name {
	case "ultralytics", "yolo-nas": // YOLO-NAS pads two more pixels at every edge
		p = of(Letterbox, Bilinear, 0, 1)
	case "ultralytics-classify":
		p = of(Crop, BilinearAntialias, 0, 1)
	case "ultralytics-rtdetr", "ultralytics-depth":
		p = of(Stretch, Bilinear, 0, 1)
	case "torchvision": // 256 for 224, 342 for 299
		p = of(Crop, BilinearAntialias, 0, 1)
		p.ShorterSide, p.Mean, p.Deviation = int(math.Round(float64(side)*256/224)), imagenetMean, imagenetDeviation
	case "timm":
		p = of(Crop, BicubicAntialias, 0, 1)
		p.ShorterSide, p.Mean, p.Deviation = int(float64(side)/.875), imagenetMean, imagenetDeviation
	case "imagenet": // without cropping, as jetson-inference and most segmentation backbones do
		p = of(Stretch, Bilinear, 0, 1)
		p.Mean, p.Deviation = imagenetMean, imagenetDeviation
	case "yolox":
		p = of(LetterboxTopLeft, Bilinear, 0, 255)
		p.Colour = BGRColour
	case "nanodet":
		p = of(Stretch, Bilinear, 0, 255)
		p.Colour, p.Mean, p.Deviation = BGRColour, []float64{103.53, 116.28, 123.675}, []float64{57.375, 57.12, 58.395}
	case "rtdetr": // also D-FINE and DEIM
		p = of(Stretch, BilinearAntialias, 0, 1)
	case "detr": // Hugging Face's processors of DETR, YOLOS, Conditional and Deformable DETR for fixed-size inputs
		p = of(Stretch, BilinearAntialias, 0, 1)
		p.Mean, p.Deviation = imagenetMean, imagenetDeviation
	case "rfdetr":
		p = of(Stretch, Bilinear, 0, 1)
		p.Mean, p.Deviation = imagenetMean, imagenetDeviation
	case "ssd-mobilenet":
		p = of(Stretch, Bilinear, 0, 255)
		p.Mean, p.Deviation = []float64{127}, []float64{128}
	case "keras": // Keras' mode "tf": MobileNet, Inception, EfficientNetV2
		p = of(Stretch, Bilinear, -1, 1)
	case "tf-detection":
		p = of(Stretch, Bilinear, 0, 255)
	case "scrfd":
		p = of(LetterboxTopLeft, Bilinear, 0, 255)
		p.Pad, p.Mean, p.Deviation = new(int), []float64{127.5}, []float64{128}
	case "yunet":
		p = of(LetterboxTopLeft, Bilinear, 0, 255)
		p.Pad, p.Colour = new(int), BGRColour
	case "movenet":
		p = of(Letterbox, Bilinear, 0, 255)
		p.Pad = new(int)
	case "centernet":
		p = of(Letterbox, Bilinear, 0, 1)
		p.Pad, p.Colour = new(int), BGRColour
		p.Mean, p.Deviation = []float64{.408, .447, .470}, []float64{.289, .274, .278}
	}
	return p
}
