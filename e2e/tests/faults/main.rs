//! What goes wrong around the controller: the API server away, storms of refusals, old news, forgotten revisions, writes
//! that are not admitted, leaders that die, machines that do not come. In every story somebody outside who sees nothing
//! but the API watches that no budget is broken, no pool exceeds its limits, and no claim gets two nodes.

mod admission;
mod leaders;
mod machines;
mod network;
mod scene;
