package head

import "fmt"

// LayoutPicoDet is LayoutNanoDet with distances from the middle of a cell (Yu et al. 2021, PP-PicoDet).
const LayoutPicoDet Layout = "picodet"

// Levels is what the output is called that joins those of a network which gives the scores and the distances of each scale apart. Nothing
// but scores can stand in it where those of classes do. NanoDet-Plus joins its four scales itself, so four that come apart are of PicoDet.
const Levels = "levels"

type picodet struct{ nanodet }

func (h picodet) describe() Description {
	d := h.nanodet.describe()
	d.Layout, d.Networks, d.Preset = LayoutPicoDet, "PicoDet of PaddleDetection without its postprocessing", "imagenet"
	return d
}

func (h picodet) weigh(n *network, f *Match) (evidence, doubt string) {
	return n.weighLevels(f, true)
}

// weighLevels is the evidence for scales that came apart, of PicoDet or of NanoDet.
func (n *network) weighLevels(f *Match, pico bool) (evidence, doubt string) {
	g, ok := n.grid(f.Boxes, 1, true)
	if !ok || n.outputs[f.Outputs[0]].Name != Levels || (g.Count > 3) != pico || n.labels > 0 && n.labels != f.Classes {
		return "", ""
	}
	return fmt.Sprintf("%s, each with the scores of %s and distances apart", n.cells(f.Boxes, 1, true), Plural(f.Classes, "class")), ""
}
