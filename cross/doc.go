// Package cross holds the release build. Its tests check the release binaries; they are skipped where there are none.
package cross
