package scene

import (
	"fmt"
	"io"
	"path"
)

// writeYOLO writes one line per part: class, centre and size as shares of the image.
func writeYOLO(to io.Writer, parts []Part, width, height int) error {
	for _, p := range parts {
		w, h := float64(width), float64(height)
		_, err := fmt.Fprintf(to, "%d %.8f %.8f %.8f %.8f\n", p.Class,
			float64(p.X0+p.X1)/2/w, float64(p.Y0+p.Y1)/2/h, float64(p.X1-p.X0)/w, float64(p.Y1-p.Y0)/h)
		if err != nil {
			return err
		}
	}
	return nil
}

// coco is the detection part of the COCO annotation format. Category ids are the class numbers; images and annotations count from 1.
type coco struct {
	Info        cocoInfo         `json:"info"`
	Images      []cocoImage      `json:"images"`
	Annotations []cocoAnnotation `json:"annotations"`
	Categories  []cocoCategory   `json:"categories"`
}

type cocoInfo struct {
	Description string  `json:"description"`
	Seed        uint64  `json:"seed"`
	Visible     float64 `json:"labelled_from_visible"`
}

type cocoImage struct {
	ID       int    `json:"id"`
	FileName string `json:"file_name"`
	Width    int    `json:"width"`
	Height   int    `json:"height"`
}

type cocoAnnotation struct {
	ID       int     `json:"id"`
	ImageID  int     `json:"image_id"`
	Category int     `json:"category_id"`
	Box      [4]int  `json:"bbox"` // left, top, width, height
	Area     int     `json:"area"`
	Crowd    int     `json:"iscrowd"`
	Visible  float64 `json:"visible"`
}

type cocoCategory struct {
	ID   int    `json:"id"`
	Name string `json:"name"`
}

func (w *writer) coco() *coco {
	c := &coco{
		Info:        cocoInfo{Description: "edge-infer demo scenes", Seed: w.options.Seed, Visible: MinLabelledShare},
		Annotations: []cocoAnnotation{},
	}
	for class, name := range names {
		c.Categories = append(c.Categories, cocoCategory{ID: class, Name: name})
	}
	for n, parts := range w.labels {
		c.Images = append(c.Images, cocoImage{ID: n + 1, FileName: path.Base(w.file(n)), Width: w.options.Width, Height: w.options.Height})
		for _, p := range parts {
			width, height := p.X1-p.X0, p.Y1-p.Y0
			c.Annotations = append(c.Annotations, cocoAnnotation{
				ID: len(c.Annotations) + 1, ImageID: n + 1, Category: int(p.Class), Box: [4]int{p.X0, p.Y0, width, height},
				Area: width * height, Visible: p.Visible,
			})
		}
	}
	return c
}
