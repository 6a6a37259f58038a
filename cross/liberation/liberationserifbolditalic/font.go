// Package liberationserifbolditalic has Go Medium in the place of a Liberation font.
package liberationserifbolditalic

import "golang.org/x/image/font/gofont/gomedium"

// TTF is the font.
var TTF = gomedium.TTF
