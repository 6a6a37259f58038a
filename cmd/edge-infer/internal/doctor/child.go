package doctor

import (
	"context"
	"encoding/json"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
	"github.com/edge-infer/edge-infer/engine/isolate"
)

// Request is what a child process is to examine. It travels over the standard input, because it may hold passwords.
type Request struct {
	Examine string        `json:"examine"`
	Root    string        `json:"root,omitempty"`
	Camera  string        `json:"camera,omitempty"`
	Model   config.Model  `json:"model"`
	Engine  config.Engine `json:"engine"`
	Remote  config.Remote `json:"remote"`
	Detect  config.Detect `json:"detect"`
}

// The examinations that are made in a child process.
const (
	driverExamination      = "driver"
	tensorrtExamination    = "tensorrt"
	onnxruntimeExamination = "onnxruntime"
	cameraExamination      = "camera"
	ModelExamination       = "model"
)

// child makes an examination in a process of its own. Whatever that process found before it died counts; its death is one more finding,
// with fix.
func (d *Doctor) child(ctx context.Context, check string, r Request, fix string) []Finding {
	r.Root, r.Model, r.Engine, r.Remote, r.Detect = d.Root, d.Config.Model, d.Config.Engine, d.Config.Remote, d.Config.Detect
	found, err := d.start(ctx, &r)
	for i := range found {
		if found[i].Check == "" {
			found[i].Check = check
		}
	}
	if err != nil {
		found = append(found, fail(check, fix, "%v", err))
	}
	return found
}

func (d *Doctor) start(ctx context.Context, r *Request) (found []Finding, err error) {
	err = isolate.Process{Program: d.Program, Timeout: d.Timeout}.Run(ctx, r, nil, func(answer json.RawMessage) {
		var f Finding
		if json.Unmarshal(answer, &f) == nil {
			found = append(found, f)
		}
	})
	return found, err
}
