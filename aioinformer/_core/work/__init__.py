"""Keys to be worked on: why, when and how often. Plain state; time is an argument.

items          one key on its way, and how urgent it is
delays         keys whose time has not come yet
queue          which keys wait, which are worked on, which are to come
statistics     the numbers of all that
rate_limiters  how long a key that failed waits
owners         which key an object's change concerns
reconciling    why a key is reconciled, and what comes of it
failing        which keys fail, since when
"""
