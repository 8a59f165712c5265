"""The six lessons, in the order in which they are listed."""

from cse.app.lessons.tours.anisotropy import ANISOTROPY
from cse.app.lessons.tours.mask import MASK
from cse.app.lessons.tours.negation import NEGATION
from cse.app.lessons.tours.prefix import PREFIX
from cse.app.lessons.tours.prototypes import PROTOTYPES
from cse.app.lessons.tours.vector import VECTOR

LESSONS = (VECTOR, ANISOTROPY, MASK, NEGATION, PREFIX, PROTOTYPES)
