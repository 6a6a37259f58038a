package postprocess

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSkeleton(t *testing.T) {
	person := NewSkeleton(PersonKeypoints())
	require.True(t, person.Person)
	require.Equal(t, []int{0, 2, 1, 4, 3, 6, 5, 8, 7, 10, 9, 12, 11, 14, 13, 16, 15}, person.mirrored, "flip_idx of coco-pose.yaml")

	dog := NewSkeleton([]string{"front_left_paw", "tail_start", "front_right_paw", "left_ear"})
	require.False(t, dog.Person)
	require.Equal(t, []int{2, 1, 0, 3}, dog.mirrored, "an ear without a partner stays")
	points := []Keypoint{{X: 1}, {X: 2}, {X: 3}, {X: 4}}
	require.True(t, dog.SwapSides(points))
	require.Equal(t, []Keypoint{{X: 3}, {X: 2}, {X: 1}, {X: 4}}, points)
	require.False(t, dog.SwapSides(points[:3]))

	d := &Detail{Keypoints: points, Skeleton: dog}
	paw, there := d.Keypoint("front_right_paw")
	require.True(t, there)
	require.Equal(t, Keypoint{X: 1}, paw)
	for name, none := range map[string]*Detail{
		"no detail": nil, "no names": {Keypoints: points}, "others": {Keypoints: points[:2], Skeleton: dog},
	} {
		_, there := none.Keypoint("left_ear")
		require.False(t, there, name)
		require.False(t, none.IsPerson(), name)
	}
	_, there = d.Keypoint("nose")
	require.False(t, there)
}
