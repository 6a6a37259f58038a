package web

import (
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/capture"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/pipeline"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/samples"
	clocks "github.com/edge-infer/edge-infer/cmd/edge-infer/internal/stage"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/store"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/update"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/upload"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/verify"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/webhook"
)

// busy is a source whose every number is set.
func busy() *still {
	latency := pipeline.Histogram{Sum: 1500 * time.Millisecond}
	latency.Counts[0], latency.Counts[5], latency.Counts[len(latency.Counts)-1] = 10, 5, 1
	return &still{Status{
		Device: "gate", Version: "1.2.3", Started: time.Unix(1700000000, 500e6), Broker: "connected", FrameMemory: 691200,
		Clips: &Clips{
			Clips: 12, Bytes: 5000, Recorded: 14, Failures: 3, Missed: 2, SlowestWrite: 250 * time.Millisecond,
			Cameras: []CameraClips{{Camera: "cam0", Recording: true}},
		},
		Engine: Engine{
			Backend: "tensorrt", Version: "10.3.0", Device: "Orin", Model: "m\xff.onnx", Precision: "fp16",
			Inference: 4 * time.Millisecond,
		},
		Cameras: []Camera{{
			Capture: capture.Stats{
				Name: "cam0", State: capture.Running, LastImage: time.Now(), Captured: 20, Dropped: 3, Damaged: 2, Abandoned: 1,
				Reconnects: 1, FPS: 29.5, Record: &capture.RecordStats{State: capture.Waiting},
			},
			Pipeline: pipeline.CameraStats{
				Inferred:        16,
				DeadlineMissed:  5,
				DroppedInterval: 1,
				DroppedMotion:   7,
				DroppedDeadline: 2,
				Slowdown:        4,
				DroppedError:    4,
				Detections:      40,
				Latency:         latency,
			},
		}},
		Readings: []Reading{
			{"temperature", "cpu", 50.5, "celsius"},
			{"power", "VDD_IN", 7.5, "watts"},
			{"load", "gpu", 0.5, "ratio"},
			{"clock", "gpu", 1e9, "hertz"},
			{"throttled", "cpu: heat", 1, "now"},
			{"over-current", "over-current events since boot", 3, "events"},
			{"fan", "x", 1, "rpm"},
		},
		Queues: []Queue{{"events", 9, 5, 0, 1, 3}},
		Servers: &Servers{
			All: []RemoteServer{{
				Address: "gpu:8001", Healthy: true, Requests: 10, Failures: 2, Suspensions: 1, LatencyMS: 5, Sent: 2000, SentFrame: 200, Received: 300,
			}},
			Retries: 3, Local: true, LocalRequests: 4, Changes: 5,
		},
		Secondary: []SecondaryNetwork{{Name: "colour", Crops: 6, Failed: 2, Missed: 4, Slow: true, Last: time.Now(), Error: "NaN"}},
		Webhooks:  []webhook.Status{{Name: "alarm", Delivered: 31, Dropped: 2, Queued: 5, Error: "refused"}},
		Samples:   &samples.Status{Frames: 3, Bytes: 1000, Failures: 1},
		Update:    &update.Status{Model: "belt", Version: 4, Checked: time.Unix(1, 0)},
		Verify: &verify.Status{
			Asked: 12, Confirmed: 5, Relabelled: 3, Dropped: 2, Unanswered: 4, Held: 1, P50: 0.25, P99: 0.5, Error: "refused",
		},
		Upload:     &upload.Status{Uploaded: 21, Bytes: 9000, Failures: 4, Lost: 1, Waiting: 6},
		EventStore: &store.Stats{Stored: 41, Dropped: 2, Error: "full"},
		Stages: Stages([]clocks.Summary{{
			Stage: clocks.Decode, Count: 3, P50: time.Millisecond, P99: 2 * time.Millisecond, P999: 3 * time.Millisecond, Max: 4 * time.Millisecond,
			Sum: 6 * time.Millisecond,
		}}),
		Reload: Reload{At: time.Unix(1700000100, 0), Error: "no such file"},
		Operation: Operation{
			Restarts: 2, Watchdog: 9500 * time.Millisecond, Certificates: []Certificate{{"page", time.Now().Add(36*time.Hour + time.Minute)}},
			Delivery: &Delivery{
				Connected: true, Since: time.Unix(1700000050, 0), Connects: 4, Repeats: 3, LargestPacket: 70000, TooLarge: 1, SpoolBytes: 4096,
				SpoolOldest: 90 * time.Second, SpoolFailures: 5, SpoolLost: 6,
			},
			Embedded: &EmbeddedBroker{
				Connections: 7, Refused: 8, Panics: 1, RetainedMessages: 90, RetainedBytes: 12345, NotRetained: 2,
				Sessions: 6, EvictedSessions: 3, QueuedBytes: 2048, RemovedSessions: 2, Delayed: 9,
			},
		},
	}}
}

// TestMetrics compares the whole text of a filled snapshot, which makes it long.
func TestMetrics(t *testing.T) {
	server := &Server{History: &oneDay{}}
	serve(t, server, busy())
	code, text, _ := ask(t, "GET", server.URL()+"metrics", nil)
	require.Equal(t, http.StatusOK, code)
	for _, line := range strings.Split(strings.TrimSpace(`
edge_infer_info{device="gate",version="1.2.3"} 1
edge_infer_engine_info{backend="tensorrt",backend_version="10.3.0",hardware="Orin",model="m�.onnx",precision="fp16"} 1
edge_infer_start_time_seconds 1.7000000005e+09
edge_infer_inference_seconds 0.004
edge_infer_frame_memory_bytes 691200
edge_infer_frames_captured_total{camera="cam0"} 20
edge_infer_secondary_crops_total{network="colour"} 6
edge_infer_secondary_failed_total{network="colour"} 2
edge_infer_secondary_missed_total{network="colour"} 4
edge_infer_secondary_hangs{network="colour"} 0
edge_infer_secondary_slow{network="colour"} 1
edge_infer_server_up{server="gpu:8001"} 1
edge_infer_server_requests_total{server="gpu:8001"} 10
edge_infer_server_failures_total{server="gpu:8001"} 2
edge_infer_server_suspensions_total{server="gpu:8001"} 1
edge_infer_server_latency_seconds{server="gpu:8001"} 0.005
edge_infer_server_sent_bytes_total{server="gpu:8001"} 2000
edge_infer_server_received_bytes_total{server="gpu:8001"} 300
edge_infer_server_sent_bytes_per_frame{server="gpu:8001"} 200
edge_infer_server_retries_total 3
edge_infer_standby_active 1
edge_infer_standby_requests_total 4
edge_infer_standby_changes_total 5
edge_infer_clips 12
edge_infer_clip_bytes 5000
edge_infer_clips_recorded_total 14
edge_infer_clip_failures_total 3
edge_infer_clip_events_missed_total 2
edge_infer_clip_write_max_seconds 0.25
edge_infer_clip_recording{camera="cam0"} 1
edge_infer_record_received{camera="cam0"} 0
edge_infer_frames_inferred_total{camera="cam0"} 16
edge_infer_frames_dropped_total{camera="cam0",reason="deadline"} 2
edge_infer_frames_dropped_total{camera="cam0",reason="error"} 4
edge_infer_frames_dropped_total{camera="cam0",reason="interval"} 1
edge_infer_frames_dropped_total{camera="cam0",reason="motion"} 7
edge_infer_frames_dropped_total{camera="cam0",reason="newer"} 3
edge_infer_deadline_missed_total{camera="cam0"} 5
edge_infer_camera_slowdown{camera="cam0"} 4
edge_infer_verify_up 0
edge_infer_verify_asked_total 12
edge_infer_verify_objects_total{outcome="confirmed"} 5
edge_infer_verify_objects_total{outcome="relabelled"} 3
edge_infer_verify_objects_total{outcome="dropped"} 2
edge_infer_verify_objects_total{outcome="unanswered"} 4
edge_infer_verify_held 1
edge_infer_verify_p50_seconds 0.25
edge_infer_verify_p99_seconds 0.5
edge_infer_stage_seconds{stage="decode",quantile="0.5"} 0.001
edge_infer_stage_seconds{stage="decode",quantile="0.999"} 0.003
edge_infer_stage_seconds{stage="decode",quantile="1"} 0.004
edge_infer_stage_seconds_sum{stage="decode"} 0.006
edge_infer_stage_seconds_count{stage="decode"} 3
edge_infer_detections_total{camera="cam0"} 40
edge_infer_camera_damaged_total{camera="cam0"} 2
edge_infer_camera_reconnects_total{camera="cam0"} 1
edge_infer_camera_running{camera="cam0"} 1
edge_infer_camera_network_up{camera="cam0"} 1
edge_infer_camera_fps{camera="cam0"} 29.5
edge_infer_latency_seconds_bucket{camera="cam0",le="0.001"} 10
edge_infer_latency_seconds_bucket{camera="cam0",le="0.01"} 15
edge_infer_latency_seconds_bucket{camera="cam0",le="5"} 15
edge_infer_latency_seconds_bucket{camera="cam0",le="+Inf"} 16
edge_infer_latency_seconds_sum{camera="cam0"} 1.5
edge_infer_latency_seconds_count{camera="cam0"} 16
edge_infer_messages_total{outcome="offered",queue="events"} 9
edge_infer_messages_total{outcome="delivered",queue="events"} 5
edge_infer_messages_total{outcome="superseded",queue="events"} 0
edge_infer_messages_total{outcome="dropped",queue="events"} 1
edge_infer_messages_queued{queue="events"} 3
edge_infer_temperature_celsius{sensor="cpu"} 50.5
edge_infer_power_watts{rail="VDD_IN"} 7.5
edge_infer_load_ratio{unit="gpu"} 0.5
edge_infer_clock_hertz{unit="gpu"} 1e+09
edge_infer_throttled{part="cpu: heat"} 1
edge_infer_web_viewers 0
edge_infer_web_images_total 0
edge_infer_web_images_missed_total 0
edge_infer_web_messages_lost_total 0
edge_infer_camera_state{camera="cam0",state="running"} 1
edge_infer_camera_tries{camera="cam0"} 0
edge_infer_camera_abandoned_total{camera="cam0"} 1
edge_infer_mqtt_connected 1
edge_infer_mqtt_since_seconds 1.70000005e+09
edge_infer_mqtt_connects_total 4
edge_infer_mqtt_largest_packet_bytes 70000
edge_infer_mqtt_too_large_total 1
edge_infer_mqtt_repeats_total 3
edge_infer_spool_bytes 4096
edge_infer_spool_oldest_seconds 90
edge_infer_spool_failures_total 5
edge_infer_spool_lost_total 6
edge_infer_event_store_up 0
edge_infer_event_store_changes_total 41
edge_infer_event_store_dropped_total 2
edge_infer_broker_connections 7
edge_infer_broker_refused_total 8
edge_infer_broker_panics_total 1
edge_infer_broker_retained_messages 90
edge_infer_broker_retained_bytes 12345
edge_infer_broker_not_retained_total 2
edge_infer_broker_sessions 6
edge_infer_broker_sessions_evicted_total 3
edge_infer_broker_delayed_total 9
edge_infer_reload_success 0
edge_infer_reload_time_seconds 1.7000001e+09
edge_infer_restarts_total 2
edge_infer_watchdog_margin_seconds 9.5
edge_infer_web_refused_logins_total 0
edge_infer_objects_total{camera="cam0",label="bolt"} 3
edge_infer_zone_entered_total{camera="cam0",zone="yard"} 2
edge_infer_zone_visits_total{camera="cam0",zone="yard"} 1
edge_infer_zone_dwell_seconds_total{camera="cam0",zone="yard"} 7.5
edge_infer_line_crossed_total{camera="cam0",direction="in",line="gate"} 4
edge_infer_line_crossed_total{camera="cam0",direction="out",line="gate"} 0
edge_infer_objects_distance_meters_total{camera="cam0"} 12
edge_infer_objects_distance_seconds_total{camera="cam0"} 8`), "\n") {
		require.Contains(t, text, "\n"+line+"\n")
	}
	require.Regexp(t, `(?m)^edge_infer_camera_last_frame_seconds\{camera="cam0"\} \d`, text)
	require.Regexp(t, `(?m)^edge_infer_certificate_left_seconds\{use="page"\} 129[56]\d\d`, text)
	require.Contains(t, text, "go_goroutines")
	require.Contains(t, text, "process_open_fds")
	problems, err := promlint.New(strings.NewReader(text)).Lint()
	require.NoError(t, err)
	require.Empty(t, problems)

	// The table of METRICS.md is complete.
	table, err := os.ReadFile("METRICS.md")
	require.NoError(t, err)
	documented := map[string]bool{}
	for _, match := range regexp.MustCompile("(?m)^\\| `(edge_infer_\\w+)`").FindAllStringSubmatch(string(table), -1) {
		documented[match[1]] = true
	}
	served := map[string]bool{}
	for _, match := range regexp.MustCompile(`(?m)^# TYPE (edge_infer_\w+)`).FindAllStringSubmatch(text, -1) {
		served[match[1]] = true
	}
	require.Equal(t, served, documented)
}

func TestTwoSensorsOfOneNameCostOnlyTheirOwnMetric(t *testing.T) {
	source := busy()
	source.status.Readings = []Reading{{"temperature", "cpu", 50, "celsius"}, {"temperature", "cpu", 60, "celsius"}}
	server := &Server{}
	serve(t, server, source)
	code, text, _ := ask(t, "GET", server.URL()+"metrics", nil)
	require.Equal(t, http.StatusOK, code)
	require.Contains(t, text, "edge_infer_frames_inferred_total")
}

func TestHealth(t *testing.T) {
	server := &Server{}
	serve(t, server, &still{})
	code, text, _ := ask(t, "GET", server.URL()+"healthz", nil)
	require.Equal(t, http.StatusOK, code)
	require.Equal(t, "ok\n", text)
	running := &Server{}
	serve(t, running, busy())
	code, text, _ = ask(t, "GET", running.URL()+"readyz", nil)
	require.Equal(t, http.StatusOK, code)
	require.Equal(t, "ready\n", text)
}

// TestReadinessSaysWhichCamerasAreDown and why.
func TestReadinessSaysWhichCamerasAreDown(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 50, 0, time.UTC)
	at := func(second int) time.Time { return time.Date(2026, 1, 2, 3, 4, second, 0, time.UTC) }
	camera := func(state capture.State, last time.Time) capture.Stats {
		return capture.Stats{State: state, Since: at(1), LastImage: last}
	}
	lost := camera(capture.Lost, at(2))
	lost.Reason, lost.NextTry, lost.Tries = "connection refused", at(55), 3
	for _, c := range []struct {
		camera Camera
		want   string
	}{
		{Camera{Capture: camera(capture.Running, at(49))}, ""},
		{Camera{Capture: camera(capture.Running, at(41))}, ""},
		{Camera{Capture: camera(capture.Running, at(40))}, "no image for 10 s"},
		{Camera{Capture: camera(capture.Running, at(20)), Silence: time.Minute}, ""},
		{
			Camera{Capture: camera(capture.Running, at(49)), Pipeline: pipeline.CameraStats{Idle: 12 * time.Second}},
			"frames arrive, but none has been inferred for 12 s",
		},
		{Camera{Capture: camera(capture.Ended, at(2))}, ""},
		{Camera{Capture: camera(capture.Connecting, time.Time{})}, "connecting since 2026-01-02T03:04:01Z"},
		{
			Camera{Capture: lost}, "lost since 2026-01-02T03:04:01Z: connection refused; last image 2026-01-02T03:04:02Z; tried 3 times, " +
				"next at 2026-01-02T03:04:55Z",
		},
	} {
		require.Equal(t, c.want, c.camera.problem(now))
	}
	away := camera(capture.Waiting, time.Time{})
	away.Name, away.Reason = "door", "no such camera"
	here := capture.Stats{Name: "gate", State: capture.Running, LastImage: time.Now()}
	server := &Server{}
	serve(t, server, &still{Status{Cameras: []Camera{{Capture: here}, {Capture: away}}}})
	code, text, _ := ask(t, "GET", server.URL()+"readyz", nil)
	require.Equal(t, http.StatusServiceUnavailable, code)
	const details = "not ready: 1 of 2 cameras are down\ncamera door: waiting since 2026-01-02T03:04:01Z: no such camera\n"
	require.Equal(t, details, text)
	closed := &Server{Token: token}
	serve(t, closed, &still{Status{Cameras: []Camera{{Capture: here}, {Capture: away}}}})
	code, text, _ = ask(t, "GET", closed.URL()+"readyz", nil)
	require.Equal(t, http.StatusServiceUnavailable, code)
	require.Equal(t, "not ready: 1 of 2 cameras are down\n", text, "strangers do not hear of names")
	_, text, _ = ask(t, "GET", closed.URL()+"readyz", nil, "Authorization", "Bearer "+token)
	require.Equal(t, details, text)
}

func TestProfilingIsOffUnlessAsked(t *testing.T) {
	server := &Server{}
	serve(t, server, &still{})
	code, _, _ := ask(t, "GET", server.URL()+"debug/pprof/", nil)
	require.Equal(t, http.StatusNotFound, code)
	profiled := &Server{Profiling: true}
	serve(t, profiled, &still{})
	code, text, _ := ask(t, "GET", profiled.URL()+"debug/pprof/goroutine?debug=1", nil)
	require.Equal(t, http.StatusOK, code)
	require.Contains(t, text, "goroutine profile")
	code, _, _ = ask(t, "GET", profiled.URL()+"debug/pprof/trace?seconds=0.01", nil)
	require.Equal(t, http.StatusOK, code)
}

func TestTheStatusIsAskedSeldom(t *testing.T) {
	source := &counted{}
	server := &Server{Source: source}
	for range 1000 {
		server.status()
	}
	require.Less(t, source.calls, 500)
}

type counted struct{ calls int }

func (c *counted) Status() Status {
	c.calls++
	return Status{}
}
