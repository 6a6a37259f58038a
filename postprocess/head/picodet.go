package head

import "fmt"

// LayoutPicoDet is LayoutNanoDet with distances from the middle of a cell (Yu et al. 2021, PP-PicoDet).
const LayoutPicoDet Layout = "picodet"

// Levels is the name of the output that joins the scores and distances of all scales, where a network exports those of each scale apart. It
// certifies that the first columns are scores. NanoDet-Plus joins its four scales itself, so that four separate scales belong to PicoDet.
const Levels = "levels"

type picodet struct{ nanodet }

func (h picodet) describe() Description {
	d := h.nanodet.describe()
	d.Layout = LayoutPicoDet
	d.Networks = "PicoDet of PaddleDetection without its postprocessing"
	d.Preset = "imagenet"
	return d
}

func (h picodet) recognise(n *network, m *match) (evidence, doubt string) {
	return n.recogniseLevels(m, true)
}

// recogniseLevels returns the evidence for separate scales, of PicoDet or of NanoDet.
func (n *network) recogniseLevels(m *match, pico bool) (evidence, doubt string) {
	g, ok := n.grid(m.boxes, 1, true)
	if !ok || n.outputs[m.outputs[0]].Name != Levels || (g.count > 3) != pico || n.labels > 0 && n.labels != m.classes {
		return "", ""
	}
	return fmt.Sprintf("%s, each with the scores of %s and distances apart", n.cells(m.boxes, 1, true), plural(m.classes, "class")), ""
}

func (picodet) newDecoder(s *settings) decoder { return &nanodetDecoder{newBoxes(s), true} }
