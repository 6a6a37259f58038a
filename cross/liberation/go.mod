// Takes the place of the Liberation fonts, which are 4 MB: gonum.org/v1/plot links all twelve for the lettering of a diagram. Each is the
// font here that labels on pictures are drawn with, so that the program has one font.
module codeberg.org/go-fonts/liberation

go 1.26

require golang.org/x/image v0.47.0
