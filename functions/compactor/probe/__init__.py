"""What a run checks of a store and of its role.

probe    the conditions that a store other than AWS honours
rights   the permissions that a run's role lacks
"""
