package predict

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestEveryClassHasALabelOfItsOwn(t *testing.T) {
	for _, test := range [][2][]string{
		{nil, nil},
		{{"bolt", "nut"}, {"bolt", "nut"}},
		{{"N/A", "person", "N/A", "N/A"}, {"N/A", "person", "N/A 2", "N/A 3"}},
		{{"x", "x", "x 2"}, {"x", "x 3", "x 2"}},
		{{"", "x", ""}, {"class 0", "x", "class 2"}},
		{{"", "class 0"}, {"class 0 2", "class 0"}},
	} {
		require.Equal(t, test[1], distinctLabels(test[0]), "%q", test[0])
	}
}
