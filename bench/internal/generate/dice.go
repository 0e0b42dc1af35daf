package generate

import (
	"hash/fnv"
	"math/rand/v2"
)

// dice is the chance of one scenario. Every name has its own, so that a new
// family leaves the others as they were.
type dice struct{ *rand.Rand }

func diceFor(name string, seed uint64) dice {
	return dice{rand.New(rand.NewPCG(seed, hash(name)))}
}

// weighted draws an index, each in proportion to its weight.
func (d dice) weighted(weights ...int) int {
	sum := 0
	for _, weight := range weights {
		sum += weight
	}
	drawn, index := d.IntN(sum), 0
	for drawn >= weights[index] {
		drawn -= weights[index]
		index++
	}
	return index
}

// between draws from low to high, both included.
func (d dice) between(low, high int) int { return low + d.IntN(high-low+1) }

func oneOf[T any](d dice, choices ...T) T { return choices[d.IntN(len(choices))] }

func shuffle[T any](d dice, list []T) {
	d.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
}

func hash(text string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(text))
	return h.Sum64()
}

// fraction turns a text into a number in [0, 1) that looks like chance. The
// mixing after the hash spreads short texts over all bits.
func fraction(text string) float64 {
	bits := hash(text)
	bits ^= bits >> 33
	bits *= 0xff51afd7ed558ccd
	bits ^= bits >> 33
	return float64(bits>>11) / (1 << 53)
}
