//! What may be committed when the records of one task fan out, fail, or finish out of order.
