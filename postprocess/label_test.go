package postprocess

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestUnknownLabelError(t *testing.T) {
	coco := []string{"person", "bicycle", "car", "motorcycle", "airplane", "bus", "train", "truck", "boat", "traffic light", "cell phone"}
	for name, want := range map[string]string{
		"people":       `label "people" is not one of the model's 11, did you mean "person"?`,
		"motorbike":    `label "motorbike" is not one of the model's 11, did you mean "motorcycle"?`,
		"Person":       `label "Person" is not one of the model's 11, did you mean "person"?`,
		"trafic_light": `label "trafic_light" is not one of the model's 11, did you mean "traffic light"?`,
		"cars":         `label "cars" is not one of the model's 11, did you mean "car"?`,
		"unicorn": `label "unicorn" is not one of the model's: person, bicycle, car, motorcycle, airplane, bus, train, truck, boat, ` +
			`traffic light and 1 more`,
	} {
		assert.EqualError(t, UnknownLabelError(name, coco), want)
	}
	assert.EqualError(t, UnknownLabelError("person", []string{"Pedestrian", "rider"}),
		`label "person" is not one of the model's 2, did you mean "Pedestrian"?`)
	for _, name := range []string{"cat", "bear", "boat"} {
		assert.Empty(t, NearestLabel(name, []string{"car", "pear", "coat", "goat"}), "%s is a class of its own", name)
	}
	assert.Equal(t, "PERSON", NearestLabel("persn", []string{"CAR", "PERSON"}))
	assert.Equal(t, "license_plate", NearestLabel("number plate", []string{"license_plate"}))
	assert.EqualError(t, UnknownLabelError("cat", []string{"bolt", "nut", "gear"}), `label "cat" is not one of the model's: bolt, nut, gear`)
}
