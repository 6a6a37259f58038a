package infer

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// Images and videos of like names keep their files apart, whichever comes first, and have the same names when asked again.
func TestNamesOfImagesAndVideos(t *testing.T) {
	sources := []string{"a/f.mp4", "f_0.jpg", "f_1.jpg", "f.jpg", "b/f.mp4", "b/f.jpg", "f_2.jpg", "f_2.mp4", "b/f_0.jpg"}
	video := func(source string) bool { return source[len(source)-1] == '4' }
	for turn := range sources {
		order := append(append([]string{}, sources[turn:]...), sources[:turn]...)
		n, files := names{}, map[string]string{}
		for range 2 {
			for _, source := range order {
				wrote := []string{}
				if video(source) {
					stem := n.ofVideo(source)
					for frame := range 4 {
						wrote = append(wrote, fmt.Sprintf("%s_%d", stem, frame))
					}
				} else {
					wrote = append(wrote, n.of(source, ""))
				}
				for _, file := range wrote {
					require.Contains(t, []string{"", source}, files[file], "%s is of %s too, in the order of %v", file, source, order)
					files[file] = source
				}
			}
		}
		require.Len(t, files, 3*4+6, "%v", order)
	}
}
