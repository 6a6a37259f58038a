// Package spelling suggests what a mistyped name was meant to be.
package spelling

import "strings"

// Nearest returns the candidate with the smallest edit distance to word; if none is close, the shortest one that begins with word, or
// "". Upper case and the characters between the parts of a name make no difference.
func Nearest(word string, candidates []string) string {
	best, found := min(len(word)/2, 2+len(word)/9)+1, ""
	word = normal(word)
	for _, candidate := range candidates {
		if d := editDistance(word, normal(candidate)); d < best {
			best, found = d, candidate
		}
	}
	if found != "" || len(word) < 2 {
		return found
	}
	for _, candidate := range candidates {
		if strings.HasPrefix(normal(candidate), word) && (found == "" || len(candidate) < len(found)) {
			found = candidate
		}
	}
	return found
}

// Near returns up to so many candidates that word may be meant for, the nearest first: Nearest, and those that contain word or begin with
// half of it.
func Near(word string, candidates []string, most int) (near []string) {
	if best := Nearest(word, candidates); best != "" {
		near = append(near, best)
	}
	beginning := word[:(len(word)+1)/2]
	for _, candidate := range candidates {
		alike := len(word) >= 2 && strings.Contains(candidate, word) || len(beginning) >= 3 && strings.HasPrefix(candidate, beginning)
		if alike && len(near) < most && (near == nil || near[0] != candidate) {
			near = append(near, candidate)
		}
	}
	return near
}

// editDistance is the Levenshtein distance.
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
