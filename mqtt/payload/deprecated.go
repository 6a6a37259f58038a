package payload

import "strconv"

// appendDeprecated appends the fields that have a new name, with their old ones. Subscribers get both for one release; then this file and
// the deprecated properties of the schema go.
func (c *CameraStats) appendDeprecated(buf []byte) []byte {
	buf = append(buf, `,"fps_displaced":`...)
	buf = AppendDecimal(buf, c.DroppedNewer)
	buf = append(buf, `,"fps_gated":`...)
	buf = AppendDecimal(buf, c.DroppedMotion)
	buf = append(buf, `,"late":`...)
	return strconv.AppendUint(buf, c.DeadlineMissed, 10)
}
