package track_test

import (
	"flag"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/postprocess"
	"github.com/edge-infer/edge-infer/postprocess/track"
	"github.com/edge-infer/edge-infer/postprocess/track/simulation"
)

var (
	firstVideo  = flag.Uint64("first", 101, "seed of the first video of each crowd")
	videos      = flag.Uint64("videos", 1, "videos of each crowd")
	videoLength = flag.Duration("video", 6*time.Second, "length of a video; 0 for that of the scene")
)

// TestSimulatedScenes requires minimum scores on other videos than those in docs/BENCHMARKS.md.
func TestSimulatedScenes(t *testing.T) {
	least := map[string]float64{
		"crowd26": 0.86, "crowd40": 0.81, "lowrate": 0.86, "pan": 0.85, "shake": 0.85, "pillars": 0.66, "night": 0.78,
	}
	for _, scene := range simulation.Scenes() {
		t.Run(scene.Name, func(t *testing.T) {
			var hota, idf1, mota float64
			for seed := *firstVideo; seed < *firstVideo+*videos; seed++ {
				if *videoLength > 0 {
					scene.Length = *videoLength
				}
				result := follow(t, scene, seed, 0)
				hota, idf1, mota = hota+result.HOTA, idf1+result.IDF1, mota+result.MOTA
			}
			n := float64(*videos)
			t.Logf("HOTA %.3f IDF1 %.3f MOTA %.3f", hota/n, idf1/n, mota/n)
			assert.GreaterOrEqual(t, hota/n, least[scene.Name])
		})
	}
}

// TestOcclusionScenes requires a gain by embeddings in scenes with long occlusions, twice a second and in every frame.
func TestOcclusionScenes(t *testing.T) {
	gain := map[string]float64{"walls": 0.1, "walls40": 0.03} // of so many fewer come back in a short video
	for _, scene := range simulation.OcclusionScenes() {
		t.Run(scene.Name, func(t *testing.T) {
			if *videoLength > 0 {
				scene.Length = 3 * *videoLength // long enough for people to return
			}
			idf1 := map[time.Duration]float64{}
			for _, every := range []time.Duration{0, 500 * time.Millisecond, time.Millisecond} {
				var hota, mota, switches float64
				for seed := *firstVideo; seed < *firstVideo+*videos; seed++ {
					r := follow(t, scene, seed, every)
					hota, mota, switches = hota+r.HOTA, mota+r.MOTA, switches+float64(r.IDSwitches)
					idf1[every] += r.IDF1 / float64(*videos)
				}
				n := float64(*videos)
				t.Logf("a look each %v: HOTA %.3f IDF1 %.3f MOTA %.3f switches %.1f", every, hota/n, idf1[every], mota/n, switches/n)
			}
			rare, every := idf1[500*time.Millisecond], idf1[time.Millisecond]
			assert.Greater(t, rare, idf1[0]+gain[scene.Name])
			assert.Greater(t, every, rare-0.02, "more looks do no harm")
		})
	}
}

// follow returns the tracker's scores on a video. If every is not 0, each object has an embedding at that interval, passed to the tracker
// before the next frame.
func follow(t *testing.T, scene simulation.Scene, seed uint64, every time.Duration) trackingScores {
	t.Helper()
	due := map[uint64]time.Time{}
	tracker := &track.Tracker{
		HighThreshold: 0.5, LowThreshold: simulation.MinScore, NewTrackThreshold: 0.6, Width: simulation.Width, Height: simulation.Height,
	}
	require.NoError(t, tracker.Open())
	var measured trackingScorer
	start := time.Unix(0, 0)
	for _, frame := range scene.Video(seed) {
		var truth, shown []identified
		for _, p := range frame.Truth {
			truth = append(truth, identified{Box: p.Box, ID: int64(p.ID)})
		}
		if scene.Pan || scene.Shake {
			tracker.CompensateMotion(frame.Camera)
		}
		for _, tr := range tracker.Update(start.Add(frame.At), frame.Detections) {
			if tr.State == postprocess.Active && tr.Index >= 0 {
				shown = append(shown, identified{Box: tr.Box, ID: int64(tr.ID)})
			}
			if now := start.Add(frame.At); every > 0 && tr.Index >= 0 && !now.Before(due[tr.ID]) {
				due[tr.ID] = now.Add(every)
				tracker.UpdateEmbedding(tr.ID, frame.Detections[tr.Index].Detail.Embedding)
			}
		}
		measured.add(truth, shown)
	}
	return measured.result()
}
