package outputs

import (
	"fmt"
	"strings"

	"github.com/edge-infer/edge-infer/capture"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/accuracy"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/mqttconfig"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/state"
	"github.com/edge-infer/edge-infer/mqtt/address"
	"github.com/edge-infer/edge-infer/postprocess/predict"
)

// startWidth is the width of a line that begins a run, in columns.
const startWidth = 80

// PrintStart prints what runs and where to watch it: camera, model, engine and broker, a line each. Several networks have a line each. With
// JSON lines it prints nothing.
func (o *Outputs) PrintStart(s *state.State) {
	if o.JSON {
		return
	}
	page := ""
	if s.Outputs.Page != "" {
		page = ", web page at " + s.Outputs.Page
	}
	fmt.Fprintf(o.Screen, "camera %s%s\n", describeCameras(s, startWidth-len("camera ")-len(page)), page)
	for i := range s.Groups {
		g := &s.Groups[i]
		m := g.Model
		if i == 0 {
			m.Device = s.Model.Device
		}
		switch {
		case len(s.Groups) > 1:
			fmt.Fprintf(o.Screen, "%s: %s\n", strings.Join(g.Cameras, ", "), oneLineOf(g, &m))
		case g.Waits:
			fmt.Fprintf(o.Screen, "model  %s is not open yet\n", g.Description)
		default:
			fmt.Fprintf(o.Screen, "model  %s%s\nengine %s\n", g.Description, layoutOf(&m), engineOf(&m))
		}
		if s.Accuracy != nil && i == 0 && !g.Waits {
			fmt.Fprintf(o.Screen, "accuracy in %s\n", accuracy.Summary(s.Accuracy))
		}
		o.Logger.Debug("model", "path", m.Path, "images", predict.Describe(m).Preprocessing, "outputs", m.Recognised.String())
	}
	fmt.Fprintf(o.Screen, "broker %s\n", o.describeBroker(&o.Settings.MQTT))
}

// oneLineOf describes one of several networks.
func oneLineOf(g *state.Group, m *predict.Model) string {
	if g.Waits {
		return fmt.Sprintf("model %s is not open yet", g.Description)
	}
	return fmt.Sprintf("model %s%s on %s", g.Description, layoutOf(m), engineOf(m))
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
func describeCameras(s *state.State, width int) string {
	if len(s.Cameras) == 1 {
		only := &s.Cameras[0].Site
		return shortened(only.Name+", "+capture.Redact(only.URI), width)
	}
	text := ""
	for i := range s.Cameras {
		rest := fmt.Sprintf(" and %d more", len(s.Cameras)-i)
		next := s.Cameras[i].Site.Name
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
func (o *Outputs) describeBroker(m *config.MQTT) string {
	if b := o.broker.Load(); b != nil {
		return "embedded, " + mqttconfig.SubscribeCommand(b.Addr(), o.Settings.Device)
	}
	var all []string
	for _, text := range m.Brokers() {
		if parsed, err := address.Parse(text); err == nil {
			all = append(all, parsed.String())
		}
	}
	if len(all) == 0 {
		return "none"
	}
	return strings.Join(all, ", ")
}
