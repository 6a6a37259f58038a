package record

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/mp4"
)

// BenchmarkRecord is the CPU time for one second of a camera of 1080p at 25 frames per second and 4 Mbit/s: 1 ms is 0.1 % of a core.
func BenchmarkRecord(b *testing.B) {
	units := encode(b, "libx264", 4, 2*time.Second, "-vf", "scale=1920:1080,noise=alls=20:allf=t", "-b:v", "4M", "-maxrate", "4M", "-bufsize",
		"4M")
	size := 0
	for i := range units {
		size += len(units[i].Data)
	}
	file, err := os.Create(filepath.Join(b.TempDir(), "clip.mp4"))
	if err != nil {
		b.Fatal(err)
	}
	defer file.Close()
	b.ReportAllocs()
	for b.Loop() {
		v, err := mp4.New(&units[0])
		if err != nil {
			b.Fatal(err)
		}
		v.FragmentLength = fragmentLength
		for i := range units {
			if !v.Accepts(&units[i]) {
				b.Fatal("another format")
			}
			fragment, err := v.Add(&units[i])
			if err != nil {
				b.Fatal(err)
			}
			if _, err := file.WriteAt(fragment, 0); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/4, "us/second")
	b.ReportMetric(float64(size)*8/4/1e6, "Mbit/s")
}
