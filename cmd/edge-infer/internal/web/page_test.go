package web

import (
	"context"
	"encoding/base64"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/mp4/mp4test"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/record"
	"github.com/edge-infer/edge-infer/postprocess"
	"github.com/edge-infer/edge-infer/postprocess/zone"
)

// drawn is what the page says it painted, and the canvas' pixels on the outlines.
type drawn struct {
	Seq   uint64  `json:"seq"`
	Image uint64  `json:"image"`
	Scale float64 `json:"scale"`
	Boxes []struct {
		Label  string     `json:"label"`
		Class  int        `json:"class"`
		Track  uint64     `json:"track"`
		Lost   bool       `json:"lost"`
		Source [4]float64 `json:"source"`
		Canvas [4]float64 `json:"canvas"`
		Colour string     `json:"colour"`
		Pixels []string   `json:"pixels"`
	} `json:"boxes"`
}

// readCanvas gives what was painted last, with the colours of pixels in the lower halves of each box' left and right edge and along its
// lower edge, where labels of other boxes are rarest.
const readCanvas = `(() => {
	const painted = structuredClone(window.edgeInfer.drawn.belt);
	const canvas = document.querySelector("canvas");
	const context = new OffscreenCanvas(canvas.width, canvas.height).getContext("2d", {willReadFrequently: true});
	context.drawImage(canvas, 0, 0);
	for (const box of painted.boxes) {
		const [x1, y1, x2, y2] = box.canvas, [w, h] = [x2 - x1, y2 - y1];
		const points = [[x1, y1 + .6 * h], [x1, y1 + .8 * h], [x2, y1 + .6 * h], [x2, y1 + .8 * h], [x1 + .25 * w, y2], [x1 + .5 * w, y2],
			[x1 + .75 * w, y2]];
		box.pixels = points.filter(([x, y]) => x > 1 && y > 1 && x < context.canvas.width - 1 && y < context.canvas.height - 1).map(([x, y]) =>
			"#" + [...context.getImageData(Math.floor(x), Math.floor(y), 1, 1).data.slice(0, 3)].map((v) => v.toString(16).padStart(2, "0")).join(""));
	}
	return painted;
})()`

func TestBoxesCoincideWithThePublishedDetections(t *testing.T) {
	s := newStage(t, 640, 360, 10, "belt")
	server := &Server{Zones: s}
	s.serve(t, server)
	b := newBrowser(t, 1280, 800)
	b.do(chromedp.Navigate(server.URL()))
	checked, outlines, matching := 0, 0, 0
	for look := range 5 {
		// Detections that come too late are not waited for, and the image is shown with others: on a busy machine look again.
		var painted drawn
		for looked := false; !looked || painted.Image != painted.Seq; looked = true {
			b.wait(fmt.Sprintf(`(({boxes, image, seq}) => boxes?.length > 2 && image > %d && image === seq)(window.edgeInfer?.drawn.belt ?? {})`,
				10+3*look))
			painted = evaluate[drawn](b, readCanvas)
		}
		s.mutex.Lock()
		published := s.published["belt"][painted.Seq]
		s.mutex.Unlock()
		var boxes []postprocess.Box
		for _, box := range painted.Boxes {
			for i := range box.Source {
				require.InDelta(t, box.Source[i]*painted.Scale, box.Canvas[i], 1e-6)
			}
			if box.Lost {
				continue
			}
			boxes = append(boxes, postprocess.Box{
				X1: float32(box.Source[0]), Y1: float32(box.Source[1]), X2: float32(box.Source[2]), Y2: float32(box.Source[3]),
			})
			for _, pixel := range box.Pixels {
				outlines++
				if near(t, pixel, box.Colour) {
					matching++
				}
			}
		}
		require.Len(t, boxes, len(published))
		for i := range published {
			require.InDelta(t, published[i].X1, boxes[i].X1, 0.06)
			require.InDelta(t, published[i].Y1, boxes[i].Y1, 0.06)
			require.InDelta(t, published[i].X2, boxes[i].X2, 0.06)
			require.InDelta(t, published[i].Y2, boxes[i].Y2, 0.06)
			checked++
		}
	}
	require.Greater(t, checked, 10)
	// A label or another outline may lie on a few of the points.
	require.Greater(t, float64(matching), 0.9*float64(outlines), "%d of %d points on the outlines have the box' colour", matching, outlines)
	b.wait(`document.querySelector(".live .chips").textContent.includes("inspection")`)
	b.wait(`/^Now [0-9]+ /.test(document.querySelector(".now").textContent)`)
	b.img("live")

	// Details are there on demand.
	require.Zero(t, evaluate[int](b, `document.querySelectorAll("[aria-label^='Latency of the last']").length`))
	evaluate[any](b, `document.querySelector("summary").click()`)
	b.wait(`document.querySelector("[aria-label^='Latency of the last']") && document.querySelector("details dd")?.checkVisibility()`)

	// What is painted over the image is switched off for this browser, and an image fills the screen.
	b.click("Boxes")
	b.wait(`window.edgeInfer.drawn.belt.boxes.length === 0`)
	b.click("Boxes")
	b.click("Names")
	b.wait(`!window.edgeInfer.overlay.names && [...document.querySelectorAll("button")].find((b) => b.textContent === "Names").ariaPressed === "false"`)
	b.do(chromedp.Reload())
	b.wait(`window.edgeInfer?.overlay.names === false && window.edgeInfer.drawn.belt?.boxes.length > 0`)
	b.click("Enlarge")
	b.wait(`document.fullscreenElement?.tagName === "CANVAS"`)
	require.Empty(t, b.consoleErrors())
}

// TestThePageShowsCamerasWithAndWithoutZones, one alone and both kinds side by side, the one without first.
func TestThePageShowsCamerasWithAndWithoutZones(t *testing.T) {
	for _, names := range [][]string{{bare}, {bare, "belt"}} {
		s := newStage(t, 320, 180, 8, names...)
		server := &Server{}
		s.serve(t, server)
		b := newBrowser(t, 1280, 800)
		b.do(chromedp.Navigate(server.URL()))
		b.wait(`window.edgeInfer.drawn.bare?.boxes.length > 0`)
		if len(names) == 1 {
			b.wait(`[...document.querySelectorAll(".stack .chips .chip b")].some((count) => Number(count.textContent) > 0)`)
		} else {
			b.wait(`document.querySelector("section[aria-label='Camera belt'] .counters").innerText.includes("inspection")`)
		}
		require.Empty(t, evaluate[string](b, `document.querySelector("section[aria-label='Camera bare'] .counters").innerText`))
		require.Empty(t, b.consoleErrors())
	}
}

// TestWhatIsOldLooksOld: first one camera of two falls silent, then the daemon is gone.
func TestWhatIsOldLooksOld(t *testing.T) {
	s := newStage(t, 160, 120, 10, "belt", "dock")
	server := &Server{}
	stop := s.serve(t, server)
	b := newBrowser(t, 1280, 800)
	b.do(chromedp.Navigate(server.URL()))
	const card = `document.querySelector("section[aria-label='Camera %s']")`
	alive := func(name string) string {
		return fmt.Sprintf(card+`.querySelector(".pill.good")?.textContent.endsWith("fps") && !`+card+`.matches(".stale")`, name, name)
	}
	b.wait(alive("belt"))
	b.wait(alive("dock"))
	s.belts[0].silent.Store(true)
	old := fmt.Sprintf(card+`.matches(".stale") && /^last image \d+ s ago$/.test(`+card+`.querySelector(".pill").textContent)`, "belt",
		"belt")
	b.wait(old)
	require.Empty(t, evaluate[[]string](b, fmt.Sprintf(`[...`+card+`.querySelectorAll(".pill.good")].map((p) => p.textContent)`, "belt")))
	require.Contains(t, evaluate[string](b, fmt.Sprintf(`getComputedStyle(`+card+`.querySelector("canvas")).filter`, "belt")), "grayscale")
	require.True(t, evaluate[bool](b, alive("dock")), "the other one is as it was")
	s.belts[0].silent.Store(false)
	b.wait(alive("belt"))
	stop()
	for _, name := range []string{"belt", "dock"} {
		lost := card + `.matches(".stale") && ` +
			`/^no connection, last image \d+ s ago$/.test(` + card + `.querySelector(".pill.bad")?.textContent)`
		b.wait(fmt.Sprintf(lost, name, name))
	}
	b.img("live-old")
	for _, message := range b.consoleErrors() {
		require.Contains(t, message, "net::ERR_", "nothing but lost connections")
	}
}

// near compares two colours as "#rrggbb".
func near(t *testing.T, one, two string) bool {
	var a, b [3]int
	for i, text := range []string{one, two} {
		c := [2]*[3]int{&a, &b}[i]
		_, err := fmt.Sscanf(text, "#%02x%02x%02x", &c[0], &c[1], &c[2])
		require.NoError(t, err)
	}
	far := 0.0
	for i := range a {
		far = max(far, math.Abs(float64(a[i]-b[i])))
	}
	return far <= 40
}

// press clicks on the image of the editor, at a share of it.
func (b *browser) press(x, y float64) {
	type place struct{ X, Y float64 }
	at := evaluate[place](b, fmt.Sprintf(`(() => { const r = document.querySelector("canvas").getBoundingClientRect(); return {X: r.left + %g * r.width, Y: r.top + %g * r.height} })()`, x, y))
	b.do(chromedp.MouseEvent(input.DispatchMouseEventTypeMouseMoved, at.X, at.Y), chromedp.MouseClickXY(at.X, at.Y))
}

// click presses the button with that text.
func (b *browser) click(text string) {
	b.do(chromedp.Click(chromedp.Search(fmt.Sprintf(`//button[normalize-space()=%q and not(@hidden)]`, text))))
}

// fill types into a field of the form.
func (b *browser) fill(name, value string) {
	evaluate[any](b, fmt.Sprintf(`(() => { const f = document.querySelector("[name=%s]"); f.value = %q; f.dispatchEvent(new Event(f.tagName === "SELECT" || f.type === "date" ? "change" : "input")) })()`, name, value))
}

// TestTheEditorOffersWhatTheNetworkOfTheCameraKnows: cameras may have networks of their own, with other labels and other keypoints.
func TestTheEditorOffersWhatTheNetworkOfTheCameraKnows(t *testing.T) {
	s := newStage(t, 640, 360, 8, "belt", "dock", "yard")
	s.belts[1].labels, s.belts[1].points = []string{"fork", "crane"}, []string{"hook", "boom_tip"}
	for i := range 300 {
		s.belts[2].labels = append(s.belts[2].labels, fmt.Sprintf("Kind %d", i))
	}
	server := &Server{Zones: s}
	s.serve(t, server)
	b := newBrowser(t, 1280, 800)
	const offered = `[...document.querySelectorAll("fieldset label.check")].map((l) => l.textContent).join(" ")`
	const anchors = `[...document.querySelectorAll("[name=anchor] option")].map((o) => o.value).join(" ")`
	b.do(chromedp.Navigate(server.URL() + "#zones/belt"))
	b.wait(`document.querySelector("pre")?.textContent.includes("inspection") && window.edgeInfer.feed.camera("belt").image`)
	b.click("inspectionzone, 4 points")
	b.wait(offered + ` === "` + strings.Join(s.belts[0].labels, " ") + `"`)
	require.NotContains(t, evaluate[string](b, anchors), "hook")

	evaluate[any](b, `void (location.hash = "#zones/dock")`)
	b.wait(`window.edgeInfer.feed.camera("dock").image`)
	b.click("inspectionzone, 4 points")
	b.wait(offered + ` === "fork crane"`)
	require.Contains(t, evaluate[string](b, anchors), "hook boom_tip")
	evaluate[any](b, `document.querySelectorAll("fieldset input")[1].click()`)
	b.fill("anchor", "boom_tip")
	b.wait(`document.querySelector("pre").textContent.includes("anchor: boom_tip")`)
	b.img("own-network")
	b.click("Save")
	b.wait(`document.querySelector(".done").textContent === "Saved."`)
	require.Equal(t, zone.Anchor("boom_tip"), s.kept("dock").Zones[0].Anchor)
	require.Contains(t, s.kept("dock").Zones[0].Labels, "crane")

	// Of many labels those that match are shown, and those that are checked.
	evaluate[any](b, `void (location.hash = "#zones/yard")`)
	b.wait(`window.edgeInfer.feed.camera("yard").image && document.querySelector("fieldset") === null`)
	b.click("inspectionzone, 4 points")
	const shown = `[...document.querySelectorAll("fieldset label.check:not([hidden])")].map((l) => l.textContent).join(" ")`
	search := func(text string) {
		evaluate[any](b, fmt.Sprintf(`(() => { const f = document.querySelector("[type=search]"); f.value = %q; f.dispatchEvent(new Event("input")) })()`, text))
	}
	b.wait(`document.querySelectorAll("fieldset label.check").length > 300`)
	search("kind 29")
	b.wait(shown + ` === "Kind 29 Kind 290 Kind 291 Kind 292 Kind 293 Kind 294 Kind 295 Kind 296 Kind 297 Kind 298 Kind 299"`)
	evaluate[any](b, `document.querySelectorAll("fieldset label.check:not([hidden]) input")[2].click()`)
	search("KIND 17")
	b.wait(shown + `.endsWith("Kind 179 Kind 291")`)
	b.img("many-labels")
}

// paintPoints paints a person, and in several ways a fork of two named points, the second of which is not visible. It keeps what was
// written, how many limbs were drawn, and the colour beside the fork's hook.
const paintPoints = `import("/files/paint.js").then(({boxes}) => {
	const people = "nose left_eye right_eye left_ear right_ear left_shoulder right_shoulder left_elbow right_elbow left_wrist right_wrist " +
		"left_hip right_hip left_knee right_knee left_ankle right_ankle";
	const paint = (label, height, keypoints, names) => {
		const canvas = document.createElement("canvas");
		[canvas.width, canvas.height] = [640, 480];
		const context = canvas.getContext("2d", {willReadFrequently: true});
		const seen = {written: [], limbs: 0};
		const {fillText, lineTo} = context;
		context.fillText = (text, ...at) => { seen.written.push(text); fillText.call(context, text, ...at); };
		context.lineTo = (...at) => { seen.limbs++; lineTo.apply(context, at); };
		const d = {label, class: 1, score: .9, box: [100, 100, 300, 100 + height], keypoints};
		const called = {fork: ["hook", "boom_tip"], person: people.split(" ")};
		const [{colour}] = boxes(context, {detections: [d], lost: [], keypoint_names: called}, 1, {names, ids: names});
		const pixel = [...context.getImageData(206, 200, 1, 1).data.slice(0, 3)];
		const beside = "#" + pixel.map((v) => v.toString(16).padStart(2, "0")).join("");
		return {...seen, colour, beside};
	};
	const points = [[200, 200, .9], [250, 250, .3]], body = people.split(" ").map((_, i) => [150 + 5 * i, 150 + 10 * i, .9]);
	window.painted = {
		named: paint("fork", 300, points, true), unnamed: paint("fork", 300, points, false), small: paint("fork", 60, points, true),
		unknown: paint("crane", 300, points, true), person: paint("person", 300, body, true),
	};
})`

// TestKeypointsArePaintedWithTheirNames: beside the points of large objects, while names are on; a person has limbs instead.
func TestKeypointsArePaintedWithTheirNames(t *testing.T) {
	s := newStage(t, 640, 360, 8, "belt")
	server := &Server{Zones: s}
	s.serve(t, server)
	b := newBrowser(t, 1280, 800)
	b.do(chromedp.Navigate(server.URL()))
	b.wait(`window.edgeInfer`)
	evaluate[any](b, "void "+paintPoints)
	b.wait(`window.painted`)
	type seen struct {
		Written        []string `json:"written"`
		Limbs          int      `json:"limbs"`
		Colour, Beside string
	}
	painted := evaluate[map[string]seen](b, `window.painted`)
	require.Equal(t, []string{"hook", "fork"}, painted["named"].Written, "the tip is not visible")
	require.True(t, near(t, painted["named"].Beside, painted["named"].Colour), "%+v", painted["named"])
	for name, written := range map[string][]string{"unnamed": {}, "small": {"fork"}, "unknown": {"crane"}, "person": {"person"}} {
		require.Equal(t, written, painted[name].Written, name)
	}
	require.False(t, near(t, painted["unnamed"].Beside, painted["unnamed"].Colour), "a name where names are off")
	require.Equal(t, 19, painted["person"].Limbs)
	require.Zero(t, painted["named"].Limbs)
	require.Empty(t, b.consoleErrors())
}

// paintCrowd paints neighbours, a zone and a line, and keeps where texts were written.
const paintCrowd = `import("/files/paint.js").then(({image, boxes, shapes}) => {
	const canvas = document.createElement("canvas");
	[canvas.width, canvas.height] = [640, 480];
	canvas.style.width = "640px";
	document.body.append(canvas);
	const context = canvas.getContext("2d");
	const grounds = [];
	const {fillRect} = context;
	context.fillRect = (...at) => { grounds.push(at); fillRect.apply(context, at); };
	const object = (box, i) => ({label: i % 3 ? "person" : "a label that is longer", class: i, score: .9, box, track: i + 1});
	const detections = [[100, 100, 200, 300], [105, 102, 205, 300], [110, 98, 190, 290],
		[600, 50, 639, 90], [610, 52, 640, 95], [0, 0, 30, 20],
		[2, 2, 28, 22], [500, 440, 640, 480], [510, 445, 640, 480], [-50, -50, 800, 600]].map(object);
	detections.push({...object([300, 200, 330, 220], 11), label: "a label wider than the image ".repeat(9)});
	const frame = () => {
		grounds.length = 0;
		image(context, null);
		grounds.length = 0;
		shapes(context, {width: 640, height: 480, zones: [{name: "yard", points: [{x: 100, y: 100}, {x: 200, y: 100}, {x: 200, y: 300}]}],
			lines: [{name: "gate", from: {x: 630, y: 20}, to: {x: 630, y: 300}}]}, {zones: [], lines: [{name: "gate", in: 12, out: 345}]});
		boxes(context, {detections, lost: []}, 1, {names: true, ids: true});
	};
	frame();
	frame();
	window.grounds = grounds;
	window.crowd = canvas.toDataURL("image/png");
})`

// TestLabelsOfThePageKeepClearOfEachOther: texts on the canvas are whole and do not cover each other.
func TestLabelsOfThePageKeepClearOfEachOther(t *testing.T) {
	s := newStage(t, 640, 360, 8, "belt")
	server := &Server{Zones: s}
	s.serve(t, server)
	b := newBrowser(t, 1280, 800)
	b.do(chromedp.Navigate(server.URL()))
	b.wait(`window.edgeInfer`)
	evaluate[any](b, "void "+paintCrowd)
	b.wait(`window.crowd`)
	grounds := evaluate[[][4]float64](b, `window.grounds`)
	require.Len(t, grounds, 13)
	for i, g := range grounds {
		require.GreaterOrEqual(t, min(g[0], g[1]), 0., "%v", g)
		require.LessOrEqual(t, g[0]+g[2], 640.001, "%v", g)
		require.LessOrEqual(t, g[1]+g[3], 480.001, "%v", g)
		for _, o := range grounds[:i] {
			apart := g[0]+g[2] <= o[0] || o[0]+o[2] <= g[0] || g[1]+g[3] <= o[1] || o[1]+o[3] <= g[1]
			require.True(t, apart, "%v and %v", g, o)
		}
	}
	if directory := os.Getenv("EDGE_INFER_SCREENSHOTS"); directory != "" {
		_, encoded, _ := strings.Cut(evaluate[string](b, `window.crowd`), ",")
		png, err := base64.StdEncoding.DecodeString(encoded)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(directory, "crowd.png"), png, 0o600))
	}
	require.Empty(t, b.consoleErrors())
}

// TestZonesAndLinesAreDrawnAndSaved draws, saves, edits and reloads in one browser, step by step.
func TestZonesAndLinesAreDrawnAndSaved(t *testing.T) {
	s := newStage(t, 640, 360, 8, "belt")
	server := &Server{Zones: s}
	s.serve(t, server)
	b := newBrowser(t, 1280, 800)
	b.do(chromedp.Navigate(server.URL() + "#zones/belt"))
	b.wait(`document.querySelector("pre")?.textContent.includes("inspection") && window.edgeInfer.feed.camera("belt").image`)

	// With the mouse: a triangle, closed by a press on its first corner.
	b.click("New zone")
	for _, p := range [][2]float64{{0.1, 0.2}, {0.3, 0.2}, {0.3, 0.7}, {0.1, 0.2}} {
		b.press(p[0], p[1])
	}
	b.fill("name", "entry")
	b.fill("loiter", "90")
	b.fill("anchor", "centre")
	b.wait(`document.querySelector("pre").textContent.includes("loiter: 1m30s")`)
	evaluate[any](b, `document.querySelector("fieldset input").click()`)

	// What is not saved is said, goes back step by step, and is there again after a look at another page.
	b.wait(`document.querySelector(".done").textContent === "Unsaved changes."`)
	time.Sleep(600 * time.Millisecond) // a change of its own
	b.fill("name", "exit")
	b.wait(`document.querySelector("pre").textContent.includes("exit")`)
	b.click("Undo")
	b.wait(`document.querySelector("pre").textContent.includes("entry")`)
	evaluate[any](b, `void (location.hash = "#system")`)
	b.wait(`document.querySelector("nav [aria-current]")?.hash === "#system"`)
	evaluate[any](b, `void (location.hash = "#zones/belt")`)
	b.wait(`document.querySelector("pre")?.textContent.includes("entry") && document.querySelector(".done").textContent === "Unsaved changes."`)

	// With the keyboard alone: a line.
	b.do(chromedp.Focus(chromedp.CSS("canvas")), chromedp.KeyEvent("l"))
	b.do(chromedp.KeyEvent(strings.Repeat(kb.ArrowLeft, 5) + " " + strings.Repeat(kb.ArrowDown, 5) + " "))
	b.wait(`document.querySelector("pre").textContent.includes("line1")`)
	b.img("zones")
	b.click("Save")
	b.wait(`document.querySelector(".done").textContent === "Saved."`)

	kept := s.kept("belt")
	require.Len(t, kept.Zones, 2)
	was, err := analyticsYAML(zone.Config{Zones: yard().Zones})
	require.NoError(t, err)
	is, err := analyticsYAML(zone.Config{Zones: kept.Zones[:1]})
	require.NoError(t, err)
	require.Equal(t, was, is, "what was not touched stays as it was")
	entry := kept.Zones[1]
	require.Len(t, entry.Points, 3)
	for i, p := range []zone.Point{{X: 0.1, Y: 0.2}, {X: 0.3, Y: 0.2}, {X: 0.3, Y: 0.7}} {
		require.InDelta(t, p.X, entry.Points[i].X, 0.003)
		require.InDelta(t, p.Y, entry.Points[i].Y, 0.003)
	}
	require.Equal(t, zone.Zone{Name: "entry", Points: entry.Points, Labels: []string{"bolt"}, Anchor: zone.Centre, Loiter: 90 * time.Second},
		entry)
	require.Len(t, kept.Lines, 2)
	line := kept.Lines[1]
	require.InDelta(t, 0.05, line.To.Y-line.From.Y, 1e-6)
	require.NoError(t, kept.Validate(zone.Names{Labels: s.Status().Engine.Labels}))

	// A point is dragged, and a mistake is shown in the words of the check.
	b.click("entryzone, 3 points")
	b.fill("name", "a/b")
	b.wait(`document.querySelector(".problem").textContent !== ""`)
	require.Equal(t, `zone "a/b": the name becomes part of an MQTT topic and cannot contain / + #`, evaluate[string](b, `document.querySelector(".problem").textContent`))
	require.True(t, evaluate[bool](b, `[...document.querySelectorAll("button")].find((b) => b.textContent === "Save").disabled`))
	b.fill("name", "entry")
	for i := range 2 {
		b.click("New zone")
		for _, p := range [][2]float64{{0.4, 0.2}, {0.5, 0.2}, {0.5, 0.3 + 0.1*float64(i)}} {
			b.press(p[0], p[1])
		}
		b.click("Finish zone")
	}
	b.wait(`document.querySelector(".problem").textContent === "" && document.querySelector("pre").textContent.includes("zone2")`)
	b.click("Save")
	b.wait(`document.querySelector(".problem").textContent !== ""`)
	require.Equal(t, "write /var/lib/edge-infer/zones.yaml: no space left on device", evaluate[string](b,
		`document.querySelector(".problem").textContent`))
	require.Len(t, s.kept("belt").Zones, 2)
	for _, message := range b.consoleErrors() {
		require.Contains(t, message, "the server responded with a status of 4", "nothing but the refusals")
	}

	// Somebody else draws meanwhile: nothing is written over that.
	_, err = s.Set("belt", "", yard())
	require.NoError(t, err)
	b.click("Revert")
	b.wait(`!document.querySelector("pre").textContent.includes("entry")`)
	_, err = s.Set("belt", "", kept)
	require.NoError(t, err)
	b.click("Save")
	b.wait(`document.querySelector(".problem").textContent !== ""`)
	require.Equal(t, ErrOutdated.Error(), evaluate[string](b, `document.querySelector(".problem").textContent`))
	require.Len(t, s.kept("belt").Zones, 2)

	// What was saved is what the live page shows.
	b.do(chromedp.Navigate(server.URL() + "#live"))
	b.wait(`window.edgeInfer.view.cards?.get("belt")?.analytics?.zones.some((z) => z.name === "entry")`)
}

func TestTheGroundIsCalibratedOnThePage(t *testing.T) {
	s := newStage(t, 640, 360, 5, "belt")
	server := &Server{Zones: s}
	s.serve(t, server)
	b := newBrowser(t, 1280, 800)
	b.do(chromedp.Navigate(server.URL() + "#zones/belt"))
	b.wait(`document.querySelector("pre")?.textContent.includes("analytics")`)
	b.click("Ground")
	corners := [][2]float64{{0.3, 0.3}, {0.7, 0.3}, {0.8, 0.8}, {0.2, 0.8}}
	for _, p := range corners {
		b.press(p[0], p[1])
	}
	b.fill("width", "4")
	b.fill("length", "12.5")
	b.wait(`document.querySelector("pre").textContent.includes("length: 12.5")`)
	b.img("ground")
	b.click("Save")
	b.wait(`document.querySelector(".done").textContent === "Saved."`)
	ground := s.kept("belt").Ground
	require.NotNil(t, ground)
	require.Equal(t, []float64{4, 12.5}, []float64{ground.Width, ground.Length})
	require.Len(t, ground.Points, 4)
	for i, p := range corners {
		require.InDelta(t, p[0], ground.Points[i].X, 0.003)
		require.InDelta(t, p[1], ground.Points[i].Y, 0.003)
	}

	// A known length takes its place.
	b.click("Known length")
	b.press(0.5, 0.2)
	b.press(0.5, 0.9)
	b.fill("length", "3")
	b.wait(`document.querySelector("pre").textContent.includes("length: 3")`)
	b.click("Save")
	b.wait(`document.querySelector(".done").textContent === "Saved."`)
	ground = s.kept("belt").Ground
	require.Len(t, ground.Points, 2)
	require.Equal(t, []float64{0, 3}, []float64{ground.Width, ground.Length})
	b.click("Delete calibration")
	b.wait(`!document.querySelector("pre").textContent.includes("ground")`)
	require.Empty(t, b.consoleErrors())
}

// TestMasksAreDrawnAndSaved, moved, cut down to a triangle and deleted, with what else the filter says left as it is.
func TestMasksAreDrawnAndSaved(t *testing.T) {
	s := newStage(t, 640, 360, 5, "belt")
	limited := yard()
	limited.Filter.Limits = map[string]zone.Limits{"bolt": {MinScore: 0.5}}
	_, err := s.Set("belt", "", limited)
	require.NoError(t, err)
	server := &Server{Zones: s}
	s.serve(t, server)
	b := newBrowser(t, 1280, 800)
	b.do(chromedp.Navigate(server.URL() + "#zones/belt"))
	b.wait(`document.querySelector("pre")?.textContent.includes("min_score") && window.edgeInfer.feed.camera("belt").image`)
	corners := [][2]float64{{0.1, 0.1}, {0.3, 0.1}, {0.3, 0.3}, {0.1, 0.3}}
	save := func() [][]zone.Point {
		b.click("Save")
		b.wait(`document.querySelector(".done").textContent === "Saved."`)
		kept := s.kept("belt")
		require.Equal(t, limited.Filter.Limits, kept.Filter.Limits)
		require.Len(t, kept.Zones, 1)
		require.NoError(t, kept.Validate(zone.Names{Labels: s.Status().Engine.Labels}))
		return kept.Filter.Masks
	}
	b.click("New mask")
	for _, p := range corners {
		b.press(p[0], p[1])
	}
	b.click("Finish mask")
	b.wait(`document.querySelector("pre").textContent.includes("masks:")`)
	b.img("mask")
	masks := save()
	require.Len(t, masks, 1)
	require.Len(t, masks[0], len(corners))
	for i, p := range corners {
		require.InDelta(t, p[0], masks[0][i].X, 0.003)
		require.InDelta(t, p[1], masks[0][i].Y, 0.003)
	}

	// With the keyboard: the mask's second corner comes after the two ends of the line, the four corners of the zone and its first one.
	b.do(chromedp.Focus(chromedp.CSS("canvas")), chromedp.KeyEvent("nnnnnnnn"+kb.ArrowRight))
	b.wait(`document.querySelector(".done").textContent === "Unsaved changes."`)
	moved := save()
	require.InDelta(t, masks[0][1].X+0.01, moved[0][1].X, 1e-6)
	b.do(chromedp.Focus(chromedp.CSS("canvas")), chromedp.KeyEvent(kb.Delete))
	b.wait(`document.querySelector(".shapes").innerText.includes("detections ignored, 3 points")`)
	require.Equal(t, [][]zone.Point{{moved[0][0], moved[0][2], moved[0][3]}}, save())
	b.click("Delete mask")
	b.wait(`!document.querySelector("pre").textContent.includes("masks:")`)
	require.Empty(t, save())
	require.Empty(t, b.consoleErrors())
}

func TestLogin(t *testing.T) {
	s := newStage(t, 160, 120, 5, "belt")
	server := &Server{User: "operator", Password: "correct horse"}
	s.serve(t, server)
	b := newBrowser(t, 800, 600)
	b.do(chromedp.Navigate(server.URL()))
	require.Equal(t, server.URL()+"login", evaluate[string](b, "location.href"))
	b.img("login")
	b.do(chromedp.SendKeys(chromedp.CSS("[name=user]"), "operator"), chromedp.SendKeys(chromedp.CSS("[name=secret]"), "wrong horse\r"))
	b.wait(`document.querySelector("[role=alert]")?.textContent === "Wrong token or password."`)
	b.do(chromedp.SendKeys(chromedp.CSS("[name=user]"), "operator"), chromedp.SendKeys(chromedp.CSS("[name=secret]"), "correct horse\r"))
	b.wait(`document.querySelector("#connection")?.textContent === "live"`)
	require.Empty(t, evaluate[string](b, "document.cookie"), "scripts do not see the session")
	b.click("Log out")
	b.wait(`location.pathname === "/login"`)
	require.Equal(t, 401, evaluate[int](b, `(() => { const r = new XMLHttpRequest(); r.open("GET", "/api/status", false); r.send(); return r.status })()`))
	for _, message := range b.consoleErrors() {
		require.Contains(t, message, "status of 401")
	}
}

func TestThePageFindsARestartedServer(t *testing.T) {
	s := newStage(t, 160, 120, 10, "belt")
	server := &Server{Address: freeAddress(t), Token: strings.Repeat("t", 16)}
	stop := s.serve(t, server)
	b := newBrowser(t, 800, 600)
	b.do(chromedp.Navigate(server.URL()))
	b.do(chromedp.SendKeys(chromedp.CSS("[name=secret]"), server.Token+"\r"))
	b.wait(`window.edgeInfer?.drawn.belt?.image > 3`)
	stop()
	b.wait(`document.querySelector("#connection").textContent === "connecting"`)
	before := evaluate[uint64](b, `window.edgeInfer.drawn.belt.image`)
	again := &Server{Address: server.Address, Token: server.Token}
	s.serve(t, again)
	b.wait(`document.querySelector("#connection").textContent === "live"`)
	b.wait(fmt.Sprintf(`window.edgeInfer.drawn.belt.image > %d`, before+3))
	require.Equal(t, "/", evaluate[string](b, "location.pathname"), "the session outlives the restart")
	for _, message := range b.consoleErrors() {
		require.Contains(t, message, "net::ERR_", "nothing but lost connections")
	}
}

func TestEveryPageFitsAPhone(t *testing.T) {
	s := newStage(t, 320, 180, 8, "belt", "dock")
	s.belts[0].runsOn, s.belts[1].runsOn = "GPU 0, NVIDIA RTX A4000 Laptop GPU (sm_86)", "GPU 1, NVIDIA RTX A4000 Laptop GPU (sm_86)"
	events := openStore(t)
	for i := range 4 {
		events.Add(storedEvent(i, "belt", "bolt"))
	}
	server := &Server{Zones: s, History: &oneDay{}, Events: events, Cameras: &garage{added: []string{"dock"}}}
	s.serve(t, server)
	b := newBrowser(t, 390, 844)
	dark := emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: "dark"}}}
	_, err := chromedp.Call(b.ctx, emulation.SetEmulatedMedia, dark)
	require.NoError(t, err)
	b.do(chromedp.Navigate(server.URL()))
	for page, ready := range map[string]string{
		"live":    `window.edgeInfer?.drawn.belt?.boxes.length > 0 && window.edgeInfer?.drawn.dock`,
		"zones":   `document.querySelector("pre")?.textContent.includes("inspection")`,
		"events":  `document.querySelector(".tiles li") && document.querySelector(".row-of")`,
		"history": `document.querySelector("table.day")?.textContent.includes("objects")`,
		"cameras": `document.querySelector("button.danger:not([hidden])")`,
		"system":  `document.querySelector("table")?.textContent.includes("belt")`,
	} {
		evaluate[any](b, fmt.Sprintf(`void (location.hash = %q)`, page))
		b.wait(ready)
		b.wait(fmt.Sprintf(`document.querySelector("nav [aria-current]")?.hash === "#%s"`, page))
		require.LessOrEqual(t, evaluate[int](b, "document.documentElement.scrollWidth"), 390, page)
		b.img("phone-" + page)
	}
	require.Equal(t, 0, evaluate[int](b, `[...document.querySelectorAll("button, input, select")].filter((e) => !e.hidden && !e.textContent.trim() && !e.closest("label") && !e.getAttribute("aria-label")).length`), "everything has a name")
	require.Empty(t, b.consoleErrors())
}

func TestThePageShowsEngineMachineAndMessages(t *testing.T) {
	s := newStage(t, 160, 120, 8, "belt")
	server := &Server{}
	s.serve(t, server)
	b := newBrowser(t, 1280, 800)
	b.do(chromedp.Navigate(server.URL() + "#system"))
	b.wait(`document.querySelectorAll("tbody tr").length >= 4`)
	shown := evaluate[string](b, `document.querySelector("main").innerText`)
	for _, fact := range []string{
		"tensorrt 10.3.0", "first choice, engine plan from the cache", "Orin (sm_87)", "parts-320.onnx", "fp16", "320 x 320, batch up to 4",
		"line-4",
		"connected to tcp://127.0.0.1:1883", "cpu-thermal", "51.5 °C", "VDD_IN", "7.42 W", "38 %", "160 x 120 BGR", "4,211",
	} {
		require.Contains(t, shown, fact)
	}
	require.Empty(t, b.consoleErrors())
}

func TestThePageSaysWhatEachCameraRunsOn(t *testing.T) {
	const first, second = "GPU 0, NVIDIA L4 (sm_89)", "GPU 1, NVIDIA L4 (sm_89)"
	for _, test := range []struct {
		name        string
		belt, dock  string
		live, table string // what stands at the cameras
	}{
		{"two GPUs", first, second, first + "; " + second, first + "; " + second},
		{"one GPU", first, first, "; ", first + "; " + first},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := newStage(t, 160, 120, 8, "belt", "dock")
			s.belts[0].runsOn, s.belts[1].runsOn = test.belt, test.dock
			server := &Server{}
			s.serve(t, server)
			b := newBrowser(t, 1280, 800)
			b.do(chromedp.Navigate(server.URL()))
			b.wait(`document.querySelectorAll("section.card .pill.good").length === 2`)
			require.Equal(t, test.live, evaluate[string](b, `["belt", "dock"].map((name) => document.querySelector(
				"section[aria-label='Camera " + name + "'] .pill + .quiet")).map((e) => e.checkVisibility() ? e.innerText : "").join("; ")`))
			b.img("live-" + test.name)
			evaluate[any](b, `void (location.hash = "system")`)
			b.wait(`document.querySelectorAll("tbody tr").length >= 5`)
			require.Equal(t, test.table, evaluate[string](b, `["belt", "dock"].map((name) => [...document.querySelectorAll("tbody tr")].find(
				(row) => row.cells[0].innerText === name).cells[2].innerText).join("; ")`))
			b.img("system-" + test.name)
			require.Empty(t, b.consoleErrors())
		})
	}
}

// TestThePageListsStoredEvents in groups with whole frames, those that happen meanwhile too; filters select, and a click shows frame, crop
// and clip.
func TestThePageListsStoredEvents(t *testing.T) {
	s := newStage(t, 160, 120, 8, "belt", "dock")
	stored := openStore(t)
	server := &Server{Events: stored}
	s.serve(t, server)
	for i, camera := range []string{"belt", "dock", "belt", "belt"} {
		e := storedEvent(i, camera, []string{"bolt", "nut"}[i%2])
		stored.Add(e)
		addImages(t, stored, e)
	}
	addClip(t, stored, "belt", storedEvent(2, "belt", "bolt").ID, "video")
	b := newBrowser(t, 1280, 800)
	b.do(chromedp.Navigate(server.URL() + "#events"))
	const list = `[...document.querySelectorAll(".tiles li")].map((l) => l.innerText)`
	b.wait(`document.querySelectorAll(".tiles li").length === 2
		&& [...document.querySelectorAll(".tiles img")].filter((i) => i.complete && i.naturalWidth === 64).length === 2`)
	require.Regexp(t, `(?s)clip.*2 bolts, 1 nut.*belt, inspection`, evaluate[[]string](b, list)[0])
	b.img("events")

	b.fill("label", "nut")
	b.wait(list + `.length === 2 && ` + list + `[0].includes("1 nut")`)
	b.fill("camera", "dock")
	b.wait(list + `.length === 1`)
	b.fill("label", "bolt")
	b.wait(`document.querySelector(".none").checkVisibility() && document.querySelector(".none").innerText.startsWith("No stored event")`)
	b.fill("label", "")
	b.fill("camera", "belt")
	b.fill("zone", "inspection")
	b.wait(list + `.length === 1`)

	evaluate[any](b, `document.querySelector(".tiles button").click()`)
	b.click("bolt 2")
	b.wait(`document.querySelector("dialog[open] dd")?.innerText === "bolt 2" && document.querySelector("dialog img.crop")?.naturalWidth === 20
		&& document.querySelector("dialog canvas")?.width === 640`)
	require.Equal(t, "/api/events/"+storedEvent(2, "belt", "bolt").ID+"/clip", evaluate[string](b,
		`document.querySelector("dialog video").getAttribute("src")`))
	require.Contains(t, evaluate[string](b, `document.querySelector("dialog dl").innerText`), "crossed gate inwards\nAttributes\ncolour red")
	b.img("event")
	b.click("Close")
	b.wait(`!document.querySelector("dialog").open && document.querySelector("dialog").children.length === 0`)

	stored.Add(storedEvent(60, "belt", "bolt")) // the stage's cameras make the page load again
	b.wait(list + `.length === 2`)
	for _, message := range b.consoleErrors() {
		require.Contains(t, message, "/clip", "the text is no video")
	}
}

// TestTheTimelineOpensTheClipAtItsTime: the clip of the event that was pressed, at the time that was pressed.
func TestTheTimelineOpensTheClipAtItsTime(t *testing.T) {
	s := newStage(t, 160, 120, 8, "bare", "belt")
	stored := openStore(t)
	server := &Server{Events: stored}
	s.serve(t, server)
	file := mp4test.File(t, mp4test.Encode(t, "libx264", 20, time.Second))
	e := storedEvent(0, "belt", "bolt")
	e.Last = e.Start.Add(12 * time.Second)
	stored.Add(e)
	clip := &record.Clip{
		ID: firstStart.Add(-5*time.Second).Format("20060102T150405") + "-abc", Camera: "belt", Events: []string{e.ID}, Path: "clip.mp4",
		State: record.Closed,
	}
	require.NoError(t, os.WriteFile(filepath.Join(stored.ClipDirectory, clip.Path), file, 0o600))
	require.NoError(t, stored.OpenClip(context.Background(), clip))

	b := newBrowser(t, 1400, 900)
	b.do(chromedp.Navigate(server.URL() + "#events"))
	b.wait(`document.querySelectorAll(".row-of").length === 3`)
	at := firstStart.Local()
	b.fill("day", at.Format(time.DateOnly))
	b.wait(`document.querySelectorAll(".mark").length === 1`)
	require.Empty(t, evaluate[string](b, `document.querySelectorAll(".track")[0].innerHTML`), "nothing happened at the first camera")
	midnight := time.Date(at.Year(), at.Month(), at.Day(), 0, 0, 0, 0, time.Local)
	share := at.Sub(midnight).Hours() / 24
	b.wait(fmt.Sprintf(`(() => {
		const [mark, track] = [".mark", ".track:has(.mark)"].map((name) => document.querySelector(name)?.getBoundingClientRect());
		return mark && Math.abs((mark.left - track.left) / track.width - %g) < 0.002;
	})()`, share))
	b.click("1 h")
	evaluate[any](b, fmt.Sprintf(`window.edgeInfer.view.timeline.show(%d)`, firstStart.Add(6*time.Second).UnixMilli()))
	b.wait(`document.querySelectorAll(".mark").length === 1 && !document.querySelector(".mark").disabled`)
	b.img("timeline")

	// Eight seconds after it came, which is 13.5 s after the clip began.
	evaluate[any](b, fmt.Sprintf(`(() => {
		const track = document.querySelectorAll(".track")[1].getBoundingClientRect();
		const start = window.edgeInfer.view.timeline.start;
		const x = track.left + (%d - start) / 3600000 * track.width;
		document.querySelector(".mark").dispatchEvent(new MouseEvent("click", {detail: 1, clientX: x, bubbles: true}));
	})()`, firstStart.Add(8*time.Second).UnixMilli()))
	b.wait(`document.querySelector("dialog[open] video")?.currentTime >= 12.4`)
	require.Less(t, evaluate[float64](b, `document.querySelector("dialog video").currentTime`), 19.0)
	require.Empty(t, b.consoleErrors())
}

// TestThePageLoadsOlderEvents page by page. Those that follow each other are one group.
func TestThePageLoadsOlderEvents(t *testing.T) {
	s := newStage(t, 160, 120, 8, "bare")
	stored := openStore(t)
	for i := range 450 {
		stored.Add(storedEvent(40*i, "bare", "bolt")) // nothing for 37 seconds between two
	}
	server := &Server{Events: stored}
	s.serve(t, server)
	b := newBrowser(t, 390, 800)
	b.do(chromedp.Navigate(server.URL() + "#events"))
	const more = `document.querySelector(".centre button")`
	for _, count := range []int{200, 400, 450} {
		b.wait(fmt.Sprintf(`document.querySelectorAll(".tiles li").length === %d`, count))
		if count == 200 {
			b.img("events-narrow")
		}
		require.Equal(t, count < 450, evaluate[bool](b, more+`.checkVisibility()`))
		evaluate[any](b, more+`.click()`)
	}
	require.Empty(t, b.consoleErrors())
}

// TestEventsAreGrouped where they follow each other at one camera, for two minutes at most.
func TestEventsAreGrouped(t *testing.T) {
	s := newStage(t, 160, 120, 8, "bare")
	server := &Server{}
	s.serve(t, server)
	b := newBrowser(t, 800, 600)
	b.do(chromedp.Navigate(server.URL()))
	evaluate[any](b, `void import("/files/timeline.js").then((m) => { window.grouped = (list) => m.groups(list.map(([camera, label, start, end], i) => ({
		id: "a-" + i, camera, label, score: i / 10, frame: "f" + i, time: new Date(1000 * start).toISOString(),
		end: end && new Date(1000 * end).toISOString(),
	}))).map((g) => [g.camera, g.title, g.start / 1000, g.end / 1000, g.best.frame].join(" ")) })`)
	b.wait(`window.grouped`)
	for list, want := range map[string][]string{
		`[]`: {},
		`[["a", "car", 120], ["b", "bus", 110, 112], ["a", "person", 100, 105], ["a", "person", 80, 84], ["a", "person", 10, 20]]`: {
			"a 2 persons, 1 car 80 120 f3", "b 1 bus 110 112 f1", "a 1 person 10 20 f4",
		},
		`Array.from({length: 40}, (_, i) => ["a", "bus", 1000 - 10 * i])`: {"a 1 bus 1000 1000 f0", "a 13 buses 870 990 f13", "a 13 buses 740 860 f26", "a 13 buses 610 730 f39"},
	} {
		require.Equal(t, want, evaluate[[]string](b, `window.grouped(`+list+`)`))
	}
}

// TestGridsOfCameras: four and nine at a time, one by its name, and only those that are shown are streamed.
func TestGridsOfCameras(t *testing.T) {
	var names []string
	for i := range 11 {
		names = append(names, fmt.Sprintf("cam%02d", i))
	}
	s := newStage(t, 160, 120, 2, names...)
	server := &Server{}
	s.serve(t, server)
	b := newBrowser(t, 1400, 900)
	b.do(chromedp.Navigate(server.URL()))
	const shown = `[...document.querySelectorAll("section.card h2")].map((h) => h.innerText).filter((h) => h.startsWith("cam")).join(" ")`
	b.wait(shown + ` === "cam00 cam01 cam02 cam03 cam04 cam05 cam06 cam07 cam08"`)
	b.do(chromedp.Click(chromedp.CSS("[aria-label='Next cameras']")))
	b.wait(shown + ` === "cam09 cam10"`)
	b.click("2 × 2")
	b.wait(shown + ` === "cam08 cam09 cam10"`)
	require.Equal(t, "9–11 of 11", evaluate[string](b, `document.querySelector(".toolbar .number").textContent`))
	b.wait(`window.edgeInfer.drawn.cam10?.image > 0`)
	require.Equal(t, 3, evaluate[int](b, `window.edgeInfer.feed.shown.length`))
	b.img("grid")
	b.do(chromedp.Reload())
	b.wait(shown + ` === "cam00 cam01 cam02 cam03"`)
	b.click("Full screen")
	b.wait(`document.fullscreenElement?.matches(".wall")`)
	b.img("full-screen")
	evaluate[any](b, `document.exitFullscreen()`)
	b.wait(`!document.fullscreenElement`)
	evaluate[any](b, `[...document.querySelectorAll("h2 a")].find((a) => a.innerText === "cam02").click()`) // the layout still changes
	b.wait(shown + ` === "cam02" && document.querySelector(".live.single")`)
	require.Empty(t, b.consoleErrors())
}

// TestThePageSaysThatNoEventsAreStored instead of an empty list.
func TestThePageSaysThatNoEventsAreStored(t *testing.T) {
	s := newStage(t, 160, 120, 8, "belt")
	server := &Server{}
	s.serve(t, server)
	b := newBrowser(t, 800, 600)
	b.do(chromedp.Navigate(server.URL() + "#events"))
	b.wait(`document.querySelector(".none")?.innerText === "events are not stored: events.directory is off"`)
	for _, message := range b.consoleErrors() {
		require.Contains(t, message, "status of 404")
	}
}

func TestNobodyLooksWhileThePageIsHidden(t *testing.T) {
	s := newStage(t, 160, 120, 10, "belt")
	server := &Server{}
	s.serve(t, server)
	b := newBrowser(t, 800, 600)
	b.do(chromedp.Navigate(server.URL()))
	b.wait(`window.edgeInfer?.drawn.belt?.image > 0`)
	require.NotZero(t, server.feed.Stats().Viewers)
	evaluate[any](b, `Object.defineProperty(document, "hidden", {value: true, configurable: true}); document.dispatchEvent(new Event("visibilitychange"))`)
	require.Eventually(t, func() bool { return server.feed.Stats().Viewers == 0 }, testPatience, 10*time.Millisecond)
	evaluate[any](b, `delete document.hidden; document.dispatchEvent(new Event("visibilitychange"))`)
	require.Eventually(t, func() bool { return server.feed.Stats().Viewers != 0 }, testPatience, 10*time.Millisecond)
}
