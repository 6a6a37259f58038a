package decode

import (
	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/postprocess"
	"github.com/edge-infer/edge-infer/postprocess/head"
)

// decode appends what d.image shows to dst, the way of the head. Its part of the outputs is in d.parts.
func (d *Decoder) decode(dst []postprocess.Detection) ([]postprocess.Detection, error) {
	var err error
	switch d.layout {
	case head.LayoutClassify:
		return d.classify(dst)
	case head.LayoutCTC, head.LayoutCTCBlankLast:
		return d.read(dst)
	case head.LayoutEmbedding:
		return d.embed(dst), nil
	case head.LayoutSemantic:
		return dst, d.semantic()
	case head.LayoutDepth:
		return dst, d.depth()
	case head.LayoutYOLOX:
		return d.yolox(dst)
	case head.LayoutNanoDet, head.LayoutPicoDet:
		return d.nanodet(dst)
	case head.LayoutDETR:
		return d.detr(dst)
	case head.LayoutEnd2End, head.LayoutPoseEnd2End, head.LayoutSegmentEnd2End:
		err = d.list(d.parts[0].data, engine.CandidateFields+d.now.Extra)
	case head.LayoutUltralyticsRTDETREnd2End:
		d.listQueries()
	case head.LayoutOBB:
		err = d.scanTurned()
	case head.LayoutOBBEnd2End:
		d.listTurned()
	case head.LayoutRTDETR, head.LayoutTorchvision:
		err = d.chosen(pixels())
	case head.LayoutTFDetection:
		err = d.chosen(d.shares(true))
	case head.LayoutNMS:
		o := pixels()
		if d.inShares() {
			o = d.shares(false)
		}
		err = d.chosen(o)
	default: // boxes and scores lie in a map
		err = d.scanMap()
	}
	if err != nil {
		return dst, err
	}
	return d.finish(dst), nil
}
