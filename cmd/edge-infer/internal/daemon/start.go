package daemon

import (
	"fmt"
	"strings"

	"github.com/edge-infer/edge-infer/capture"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/accuracy"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/broker"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/daemon/device"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/pipeline"
	"github.com/edge-infer/edge-infer/mqtt/address"
	"github.com/edge-infer/edge-infer/postprocess/predict"
)

// startWidth is the width of a line that begins a run, in columns.
const startWidth = 80

// printStart prints what runs and where to watch it: camera, model, engine and broker, a line each. Several networks have a line each.
func (o *outputs) printStart(cameras []pipeline.Camera) {
	page := ""
	if o.web != nil {
		page = ", web page at " + o.web.URL()
	}
	fmt.Fprintf(o.screen, "camera %s%s\n", o.describeCameras(cameras, startWidth-len("camera ")-len(page)), page)
	views := o.groups.Groups()
	for i, d := range views {
		m := d.Running().Model()
		if i == 0 {
			m.Device = o.groups.Model().Device
		}
		switch {
		case len(views) > 1:
			fmt.Fprintf(o.screen, "%s: %s\n", strings.Join(d.CameraNames(), ", "), oneLineOf(d, &m))
		case d.Waits():
			fmt.Fprintf(o.screen, "model  %s is not open yet\n", d.Describe())
		default:
			fmt.Fprintf(o.screen, "model  %s%s\nengine %s\n", d.Describe(), layoutOf(&m), engineOf(&m))
		}
		if v := o.verdict(); v != nil && i == 0 && !d.Waits() {
			fmt.Fprintf(o.screen, "accuracy in %s\n", accuracy.Summary(v))
		}
		o.logger.Debug("model", "path", m.Path, "images", predict.Describe(m).Preprocessing, "outputs", m.Recognised.String())
	}
	fmt.Fprintf(o.screen, "broker %s\n", o.describeBroker())
}

// oneLineOf describes one of several networks.
func oneLineOf(d *device.Device, m *predict.Model) string {
	if d.Waits() {
		return fmt.Sprintf("model %s is not open yet", d.Describe())
	}
	return fmt.Sprintf("model %s%s on %s", d.Describe(), layoutOf(m), engineOf(m))
}

// engineOf describes what runs a model.
func engineOf(m *predict.Model) string {
	return fmt.Sprintf("%s %s, %s, %s", m.Backend, m.BackendVersion, m.Device, m.Precision)
}

// layoutOf describes how a model is read: its layout and, for images, its input size.
func layoutOf(m *predict.Model) string {
	if m.Image == nil {
		return fmt.Sprintf(" (%s)", m.Recognised.Layout)
	}
	return fmt.Sprintf(" (%s, input %dx%d)", m.Recognised.Layout, m.Width, m.Height)
}

// describeCameras names as many cameras as fit into the width, a single one with its address.
func (o *outputs) describeCameras(cameras []pipeline.Camera, width int) string {
	if len(cameras) == 1 {
		text := cameras[0].Name
		site := o.site()
		if camera := site.Camera(text); camera != nil {
			text += ", " + capture.Redact(camera.URI)
		}
		return shortened(text, width)
	}
	text := ""
	for i := range cameras {
		rest := fmt.Sprintf(" and %d more", len(cameras)-i)
		next := cameras[i].Name
		if i > 0 {
			next = text + ", " + next
		}
		if i > 0 && len(next)+len(rest) > width {
			return text + rest
		}
		text = next
	}
	return text
}

func shortened(text string, width int) string {
	if runes := []rune(text); len(runes) > width {
		return string(runes[:max(0, width-3)]) + "..."
	}
	return text
}

// describeBroker returns the brokers without passwords, or how to watch the embedded one.
func (o *outputs) describeBroker() string {
	if b := o.broker; b != nil {
		return "embedded, " + broker.SubscribeCommand(b.Addr(), o.device)
	}
	var all []string
	for _, text := range o.config.MQTT.Brokers() {
		if parsed, err := address.Parse(text); err == nil {
			all = append(all, parsed.String())
		}
	}
	if len(all) == 0 {
		return "none"
	}
	return strings.Join(all, ", ")
}
