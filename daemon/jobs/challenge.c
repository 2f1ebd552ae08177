#include "daemon/jobs/challenge.h"

/* db/cells_judge.c says the same in SQL (IS_RIGHT). */
bool challenges_ignored(const struct challenges *c)
{
    return c->unchanged > 0 ||
           (c->repeated >= CHALLENGES_REPEATED && c->repeated > 3 * c->passed);
}

bool challenges_passed(const struct challenges *c)
{
    return c->passed > 0 && !challenges_ignored(c);
}

bool challenge_is_due(const struct challenge_offer *offer, const struct challenges *known)
{
    int64_t made = known->passed + known->repeated + known->failed;

    if (!offer->seed || known->unchanged > 0) {
        return false;
    }
    if (known->passed == 0 && known->repeated < CHALLENGES_REPEATED_MAX &&
        known->failed < CHALLENGES_FAILED) {
        return offer->needed;
    }
    return offer->draw % (CHALLENGES_RARE * (made + 1)) == 0;
}
